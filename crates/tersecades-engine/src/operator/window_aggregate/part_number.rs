//! Keys as numbers that sort as they do: some of their bits at a time, or the first of them.

use tersecades_columnar::dictionary::Ranks;
use tersecades_columnar::types::Physical;

use super::keys::KeyLayout;
use super::packer::PackedKeys;

/// Some bits of a key.
#[derive(Debug, Clone, Copy)]
struct Field {
    /// Of this column.
    column: usize,
    what: What,
    bits: u32,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// Whether it is null, which goes behind all values.
    Null,
    /// A value of at most 64 bits.
    Value,
    /// The halves of a wider one.
    High,
    Low,
}

impl Field {
    #[inline]
    fn number(self, (keys, ranks): (&KeyLayout, &[Option<Ranks>]), key: &[u64]) -> u64 {
        let wide = || keys.ordered(key, self.column, None) as u128 ^ 1 << (u128::BITS - 1);
        match self.what {
            What::Null => u64::from(keys.is_null(key, self.column)),
            What::Value => value(keys, ranks, key, self.column),
            What::High => (wide() >> u64::BITS) as u64,
            What::Low => wide() as u64,
        }
    }
}

/// What column `index` of `key` is among the values of the column; a null text is behind all.
#[inline]
fn value(keys: &KeyLayout, ranks: &[Option<Ranks>], key: &[u64], index: usize) -> u64 {
    let part = keys.columns[index].part(key);
    let rank = ranks[index].as_ref().map(|ranks| &ranks.rank_of);
    let rank = rank.and_then(|rank_of| rank_of.get(part as usize));
    rank.map_or(part, |rank| (*rank).into())
}

/// Keys cut into parts of at most 64 bits, the most significant first.
#[derive(Debug, Default)]
pub(super) struct KeyParts {
    fields: Vec<Field>,
    /// The field behind the last of each part.
    ends: Vec<usize>,
}

impl KeyParts {
    /// Cuts keys of `layout`, those of `all`.
    pub(super) fn split(&mut self, layout: &KeyLayout, all: PackedKeys<'_>) {
        self.fields.clear();
        self.ends.clear();
        let nulls = nulls_of(layout, all);
        for (column, key) in layout.columns.iter().enumerate() {
            let has_nulls = !key.is_text() && layout.is_null(&nulls, column);
            let halves = [(What::High, u64::BITS), (What::Low, u64::BITS)];
            let whole = [(What::Value, key.bits())];
            let parts: &[(What, u32)] = match key.physical() {
                Physical::Wide => &halves,
                _ => &whole,
            };
            let flag = has_nulls.then_some((What::Null, 1));
            let fields = flag.into_iter().chain(parts.iter().copied());
            self.fields
                .extend(fields.map(|(what, bits)| Field { column, what, bits }));
        }
        let mut room = u64::BITS;
        for (index, field) in self.fields.iter().enumerate() {
            if field.bits > room {
                self.ends.push(index);
                room = u64::BITS;
            }
            room -= field.bits;
        }
        self.ends.push(self.fields.len());
    }

    /// How many parts there are.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Part `part` of `key`, whose texts rank by `ranks`.
    #[inline]
    pub(super) fn number(
        &self,
        part: usize,
        (keys, ranks): (&KeyLayout, &[Option<Ranks>]),
        key: &[u64],
    ) -> u64 {
        let start = if part == 0 { 0 } else { self.ends[part - 1] };
        let fields = self.fields[start..self.ends[part]].iter();
        fields.fold(0, |number: u64, field| {
            let before = number.checked_shl(field.bits).unwrap_or(0);
            before | field.number((keys, ranks), key)
        })
    }
}

/// A key that is null in each column, no text, that is null in some key.
fn nulls_of(layout: &KeyLayout, all: PackedKeys<'_>) -> Vec<u64> {
    let keys = || all.keys.chunks_exact(all.words.max(1));
    let some = |word: usize| keys().fold(0, |nulls, key| nulls | key[word]);
    let mut nulls = vec![0; layout.words_without_nulls()];
    nulls.extend((nulls.len()..all.words).map(some));
    nulls
}

/// Makes numbers of keys, of which no later key in their order has a smaller one: their first 64
/// bits, all ones from the first null on.
pub(super) struct Numbers<'a> {
    keys: &'a KeyLayout,
    ranks: &'a [Option<Ranks>],
    /// Bits of each of the first columns that count.
    bits: Vec<u32>,
    /// Whether those are all there are.
    whole: bool,
}

impl<'a> Numbers<'a> {
    /// Those of keys of a layout, whose texts rank by `ranks`; `None` where the first column is
    /// wider than 64 bits.
    pub(super) fn of(keys: &'a KeyLayout, ranks: &'a [Option<Ranks>]) -> Option<Self> {
        let (mut bits, mut room) = (Vec::new(), u64::BITS);
        for column in &keys.columns {
            if room == 0 || column.bits() > u64::BITS {
                break;
            }
            bits.push(column.bits().min(room));
            room -= column.bits().min(room);
        }
        let all: u32 = keys.columns.iter().map(|column| column.bits()).sum();
        let whole = all <= u64::BITS;
        (!bits.is_empty()).then_some(Numbers {
            keys,
            ranks,
            bits,
            whole,
        })
    }

    /// The number of `key`, and whether no other key has it.
    #[inline]
    pub(super) fn number(&self, key: &[u64]) -> (u64, bool) {
        let mut number = 0u64;
        for (index, bits) in self.bits.iter().enumerate() {
            if self.keys.is_null(key, index) {
                let rest: u32 = self.bits[index..].iter().sum();
                let ones = u64::MAX >> (u64::BITS - rest);
                return (number.checked_shl(rest).unwrap_or(0) | ones, false);
            }
            let part = value(self.keys, self.ranks, key, index);
            let cut = self.keys.columns[index].bits() - bits;
            number = number.checked_shl(*bits).unwrap_or(0) | part >> cut;
        }
        (number, self.whole)
    }
}
