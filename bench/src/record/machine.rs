//! What a machine is: its processor, its caches and its memory.

use std::fs::read_to_string;

use tersecades_columnar::kernels::kernels;

/// `AMD EPYC (family 25, model 17), 2 cores, avx512, L2 1 MiB, L3 32 MiB, 24 GiB`, without what the
/// system does not tell.
pub(super) fn description() -> String {
    let processor = read_to_string("/proc/cpuinfo").ok();
    let processor = processor.and_then(|text| processor_of(&text));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parts = vec![
        processor.unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        format!("{cores} cores"),
        kernels().name.to_owned(),
    ];
    for level in [2, 3] {
        let mib = |bytes| format!("L{level} {} MiB", bytes as f64 / f64::from(1 << 20));
        parts.extend(cache_bytes(level).map(mib));
    }
    let memory = read_to_string("/proc/meminfo").ok();
    let kib = memory.and_then(|text| kib(field(&text, "MemTotal")?));
    parts.extend(kib.map(|kib| format!("{:.0} GiB", kib as f64 / f64::from(1 << 20))));
    parts.join(", ")
}

/// Name, family and model of a processor: virtual machines leave its number out of the name.
fn processor_of(text: &str) -> Option<String> {
    let name = field(text, "model name")?;
    let numbers = field(text, "cpu family").zip(field(text, "model"));
    Some(match numbers {
        Some((family, model)) => format!("{name} (family {family}, model {model})"),
        None => name.to_owned(),
    })
}

/// What stands behind `name:` in the first line that has it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(known, _)| known.trim() == name)?;
    Some(value.trim())
}

/// Bytes of the data cache of a level, as Linux tells of the first core.
pub(crate) fn cache_bytes(level: u8) -> Option<usize> {
    (0..8).find_map(|index| {
        let of = |name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            read_to_string(path).ok()
        };
        let holds_data =
            of("level")?.trim() == level.to_string() && of("type")?.trim() != "Instruction";
        holds_data
            .then(|| kib(&of("size")?))
            .flatten()
            .map(|kib| kib << 10)
    })
}

/// The number of `32K` or `32 kB`.
fn kib(text: &str) -> Option<usize> {
    let digits = text
        .trim()
        .trim_end_matches(|it: char| !it.is_ascii_digit());
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_named_with_its_numbers() {
        let text = "cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        let processor = processor_of(text).unwrap();
        assert_eq!(processor, "AMD EPYC (family 25, model 17)");
        assert_eq!(processor_of("model name : ARM").unwrap(), "ARM");
        assert_eq!(kib("  24576000 kB\n"), Some(24_576_000));
        assert_eq!(kib("32K\n"), Some(32));
    }
}
