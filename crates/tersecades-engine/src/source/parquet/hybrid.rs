//! Numbers in the hybrid of runs and packed groups: dictionary codes and definition levels.
//!
//! ```text
//! run := header (varint)
//!        header even: one value, repeated header / 2 times, in the fewest whole bytes
//!        header odd:  header / 2 groups of 8 values, width bits each, lowest bit first
//! ```
//! Source: "Encodings", Apache Parquet format, run length encoding / bit-packing hybrid.

use bytes::Bytes;
use tersecades_columnar::error::{Error, Result};

/// Values of a packed group.
const GROUP: usize = 8;

/// Bytes that reading one group may touch: 32 bits a value, and a word past the last of them.
const WINDOW: usize = 40;

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
        let (head, out) = match behind {
            0 => out.split_at_mut(0),
            _ => out.split_at_mut(out.len().min(GROUP - behind)),
        };
        let mut next = behind + head.len();
        if !head.is_empty() {
            head.copy_from_slice(&self.group(next)?[behind..next]);
        }
        if next == GROUP {
            self.at += self.width as usize;
            next = 0;
        }
        let (whole, tail) = out.split_at_mut(out.len() / GROUP * GROUP);
        if !whole.is_empty() {
            let end = self.at + whole.len() / GROUP * self.width as usize;
            let bytes = self.bytes.get(self.at..).ok_or_else(ended)?;
            if end > self.bytes.len() {
                return Err(ended());
            }
            UNPACK[self.width as usize](bytes, whole);
            self.at = end;
        }
        if !tail.is_empty() {
            tail.copy_from_slice(&self.group(tail.len())?[..tail.len()]);
            next = tail.len();
        }
        self.run = Run::Packed(next);
        Ok(())
    }

    /// The group at hand, of which `wanted` values must be there: some writers cut the last one.
    fn group(&self, wanted: usize) -> Result<[u32; GROUP]> {
        let width = self.width as usize;
        let ahead = self.bytes.get(self.at..).ok_or_else(ended)?;
        if ahead.len() * 8 < wanted * width {
            return Err(ended());
        }
        let mut padded = [0; WINDOW];
        let length = ahead.len().min(width);
        padded[..length].copy_from_slice(&ahead[..length]);
        let mut group = [0; GROUP];
        UNPACK[width](&padded, &mut group);
        Ok(group)
    }
}

/// Unpacks as many whole groups as the output holds; the bytes of all of them are there.
type Unpack = fn(&[u8], &mut [u32]);

/// By width.
const UNPACK: [Unpack; WIDTH_MAX as usize + 1] = [
    unpack::<0>,
    unpack::<1>,
    unpack::<2>,
    unpack::<3>,
    unpack::<4>,
    unpack::<5>,
    unpack::<6>,
    unpack::<7>,
    unpack::<8>,
    unpack::<9>,
    unpack::<10>,
    unpack::<11>,
    unpack::<12>,
    unpack::<13>,
    unpack::<14>,
    unpack::<15>,
    unpack::<16>,
    unpack::<17>,
    unpack::<18>,
    unpack::<19>,
    unpack::<20>,
    unpack::<21>,
    unpack::<22>,
    unpack::<23>,
    unpack::<24>,
    unpack::<25>,
    unpack::<26>,
    unpack::<27>,
    unpack::<28>,
    unpack::<29>,
    unpack::<30>,
    unpack::<31>,
    unpack::<32>,
];

fn unpack<const WIDTH: usize>(bytes: &[u8], out: &mut [u32]) {
    for (group, eight) in out.as_chunks_mut::<GROUP>().0.iter_mut().enumerate() {
        let bytes = &bytes[group * WIDTH..];
        match bytes.first_chunk::<WINDOW>() {
            Some(window) => unpack_group::<WIDTH>(window, eight),
            None => {
                let mut padded = [0; WINDOW];
                padded[..WIDTH].copy_from_slice(&bytes[..WIDTH]);
                unpack_group::<WIDTH>(&padded, eight);
            }
        }
    }
}

#[inline(always)]
fn unpack_group<const WIDTH: usize>(window: &[u8; WINDOW], out: &mut [u32; GROUP]) {
    let mask = (1_u64 << WIDTH) - 1;
    for (index, value) in out.iter_mut().enumerate() {
        let bit = index * WIDTH;
        let word = window[bit / 8..].first_chunk().copied();
        let word = u64::from_le_bytes(word.unwrap_or_default());
        *value = (word >> (bit % 8) & mask) as u32;
    }
}

fn ended() -> Error {
    Error::corrupt("a Parquet page ends before its last value")
}
