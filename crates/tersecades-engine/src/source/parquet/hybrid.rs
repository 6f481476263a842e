//! Numbers in the hybrid of runs and packed groups: dictionary codes and definition levels.
//!
//! ```text
//! run := header (varint)
//!        header even: one value, repeated header / 2 times, in the fewest whole bytes
//!        header odd:  header / 2 groups of 8 values, width bits each, lowest bit first
//! ```
//! Source: "Encodings", Apache Parquet format, run length encoding / bit-packing hybrid.

use arrow_buffer::BooleanBufferBuilder;
use bytes::Bytes;
use tersecades_columnar::error::{Error, Result};
use tersecades_columnar::kernels::kernels;

/// Values of a packed group.
const GROUP: usize = 8;

/// Widest number.
const WIDTH_MAX: u32 = 32;

#[derive(Debug, Clone, Copy)]
enum Run {
    /// One value again and again.
    Repeated(u32),
    /// Packed groups, of the first of which this many values are behind.
    Packed(usize),
}

/// Where reading stands in one sequence of runs.
#[derive(Debug)]
pub(super) struct Hybrid {
    bytes: Bytes,
    at: usize,
    width: u32,
    run: Run,
    /// Values of the run that are ahead.
    left: usize,
}

impl Hybrid {
    /// The numbers of `width` bits in `bytes`.
    ///
    /// # Errors
    /// `Corrupt` for more than 32 bits.
    pub(super) fn new(bytes: Bytes, width: u32) -> Result<Self> {
        if width > WIDTH_MAX {
            return Err(Error::corrupt(format!("numbers of {width} bits in a page")));
        }
        Ok(Hybrid {
            bytes,
            at: 0,
            width,
            run: Run::Repeated(0),
            left: 0,
        })
    }

    /// Passes over `count` numbers if all are known to be `value` without reading them.
    pub(super) fn pass_repeated(&mut self, value: u32, count: usize) -> Result<bool> {
        if self.left == 0 {
            self.next_run()?;
        }
        let passes = matches!(self.run, Run::Repeated(found) if found == value);
        if passes && self.left >= count {
            self.left -= count;
            return Ok(true);
        }
        Ok(false)
    }

    /// Fills `out` with the next numbers.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before.
    pub(super) fn read(&mut self, mut out: &mut [u32]) -> Result<()> {
        while !out.is_empty() {
            if self.left == 0 {
                self.next_run()?;
                continue;
            }
            let (filled, rest) = out.split_at_mut(self.left.min(out.len()));
            match self.run {
                Run::Repeated(value) => filled.fill(value),
                Run::Packed(behind) => self.unpack(behind, filled)?,
            }
            self.left -= filled.len();
            out = rest;
        }
        Ok(())
    }

    /// Passes over the next `count` numbers, which are those of the rows from `start` on, and
    /// visits the rows `only` of them, which ascend.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before; what `visit` says.
    pub(super) fn pick(
        &mut self,
        count: usize,
        start: usize,
        mut only: &[u32],
        mut visit: impl FnMut(usize, u32) -> Result<()>,
    ) -> Result<()> {
        let (mut row, end) = (start, start + count);
        while row < end {
            if self.left == 0 {
                self.next_run()?;
                continue;
            }
            let run_end = row + self.left.min(end - row);
            while let Some((first, rest)) = only.split_first()
                && (*first as usize) < run_end
            {
                let wanted = *first as usize;
                let number = match self.run {
                    Run::Repeated(value) => value,
                    Run::Packed(behind) => self.packed(behind + wanted - row)?,
                };
                visit(wanted, number)?;
                only = rest;
            }
            if let Run::Packed(behind) = self.run {
                let passed = behind + run_end - row;
                self.at += passed / GROUP * self.width as usize;
                self.run = Run::Packed(passed % GROUP);
            }
            self.left -= run_end - row;
            row = run_end;
        }
        Ok(())
    }

    /// The number at `index` of the packed groups at hand.
    #[inline]
    fn packed(&self, index: usize) -> Result<u32> {
        let bit = index * self.width as usize;
        let first = self.at + bit / 8;
        let end = self.at + (bit + self.width as usize).div_ceil(8);
        let word = match self.bytes.get(first..).and_then(<[u8]>::first_chunk) {
            Some(word) => u64::from_le_bytes(*word),
            None => {
                let bytes = self.bytes.get(first..end).ok_or_else(ended)?;
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }
        };
        Ok((word >> (bit % 8) & ((1 << self.width) - 1)) as u32)
    }

    /// Appends the next `count` numbers of one bit each.
    ///
    /// # Errors
    /// `Corrupt` if the bytes end before.
    pub(super) fn read_bits(&mut self, count: usize, out: &mut BooleanBufferBuilder) -> Result<()> {
        let mut ahead = count;
        while ahead > 0 {
            if self.left == 0 {
                self.next_run()?;
                continue;
            }
            let taken = self.left.min(ahead);
            match self.run {
                Run::Repeated(value) => out.append_n(taken, value == 1),
                Run::Packed(behind) => {
                    let end = behind + taken;
                    let bytes = self.bytes.get(self.at..).unwrap_or_default();
                    if bytes.len() < end.div_ceil(GROUP) {
                        return Err(ended());
                    }
                    out.append_packed_range(behind..end, bytes);
                    self.run = Run::Packed(end % GROUP);
                    self.at += end / GROUP;
                }
            }
            self.left -= taken;
            ahead -= taken;
        }
        Ok(())
    }

    fn next_run(&mut self) -> Result<()> {
        let header = self.varint()?;
        let count = usize::try_from(header >> 1).map_err(|_| ended())?;
        if header & 1 == 1 {
            self.run = Run::Packed(0);
            self.left = count.checked_mul(GROUP).ok_or_else(ended)?;
            return Ok(());
        }
        let mut value = [0; 4];
        let length = self.width.div_ceil(8) as usize;
        let bytes = self
            .bytes
            .get(self.at..self.at + length)
            .ok_or_else(ended)?;
        value[..length].copy_from_slice(bytes);
        self.at += length;
        self.run = Run::Repeated(u32::from_le_bytes(value));
        self.left = count;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(ended)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ended())
    }

    /// Fills `out` from groups, of the first of which `behind` values were read before.
    fn unpack(&mut self, behind: usize, out: &mut [u32]) -> Result<()> {
        let mut out = out;
        if behind > 0 {
            let mut group = [0; GROUP];
            let end = GROUP.min(behind + out.len());
            self.numbers(&mut group[..end])?;
            let (head, rest) = out.split_at_mut(end - behind);
            head.copy_from_slice(&group[behind..end]);
            out = rest;
            self.run = Run::Packed(end % GROUP);
            self.at += end / GROUP * self.width as usize;
        }
        if !out.is_empty() {
            self.numbers(out)?;
            self.run = Run::Packed(out.len() % GROUP);
            self.at += out.len() / GROUP * self.width as usize;
        }
        Ok(())
    }

    /// Fills `out` from the group at hand on; some writers cut the last group.
    fn numbers(&self, out: &mut [u32]) -> Result<()> {
        let length = (out.len() * self.width as usize).div_ceil(8);
        match self.bytes.get(self.at..) {
            Some(bytes) if length <= bytes.len() => {
                (kernels().unpack_stream)(bytes, self.width, out);
                Ok(())
            }
            _ => Err(ended()),
        }
    }
}

fn ended() -> Error {
    Error::corrupt("a Parquet page ends before its last value")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that claims more values than any memory has, of which the first bytes are there.
    #[test]
    fn single_numbers_are_picked_out_of_runs_of_any_claimed_length() {
        let mut bytes = vec![0xff; 8];
        bytes.extend([0x3f, 0b0000_0000, 0b0000_0100]);
        let mut numbers = Hybrid::new(bytes.into(), 1).unwrap();
        let mut found = Vec::new();
        let mut see = |row, number| {
            found.push((row, number));
            Ok(())
        };
        numbers.pick(12, 50, &[50, 60], &mut see).unwrap();
        assert!(
            numbers.pick(100, 62, &[100], &mut see).is_err(),
            "no bytes there"
        );
        assert_eq!(found, [(50, 0), (60, 1)]);
    }
}
