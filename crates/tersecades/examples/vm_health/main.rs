//! VM health: when did a machine work while its network was silent, and for how long?
//!
//! `cargo run --release -p tersecades --example vm_health`

mod query;
mod score;

use std::time::Duration;

use tersecades::prelude::*;

const ROWS: u64 = 800_000;

fn main() -> tersecades::Result<()> {
    let parameters = vec![("vms".to_owned(), "500".to_owned())];
    let counters = GeneratorTable::new("counters", ROWS, 7, parameters)?;
    let mut truth = Vec::new();
    counters.start()?.write_truth(&mut truth)?;
    let injected = score::injected(&String::from_utf8_lossy(&truth));
    for scheme in ["", "zfp(1)", "zfp(1000)"] {
        let parameters = vec![("vms".to_owned(), "500".to_owned())];
        let mut stream = Stream::from_table(GeneratorTable::new("counters", ROWS, 7, parameters)?);
        for column in ["average_value", "max_value"] {
            if !scheme.is_empty() {
                stream = stream.encoding(column, scheme);
            }
        }
        let changes = query::changes(stream, Duration::from_secs(60)).run()?;
        let found = query::losses(changes)?;
        let score = score::score(&injected, &found);
        let (precision, recall) = (score.precision(), score.recall());
        let how = if scheme.is_empty() { "exact" } else { scheme };
        println!("{how}: {score:?}, precision {precision:.3}, recall {recall:.3}");
        if let (true, Some(loss)) = (scheme.is_empty(), found.first()) {
            let seconds = loss.to_ms.map(|end| (end - loss.from_ms) / 1000);
            println!("the first: {} for {seconds:?} s", loss.vm);
        }
    }
    Ok(())
}
