//! The checksum of a whole gzip stream from those of its partitions.

/// The polynomial of CRC-32 (ISO-HDLC), reflected.
const POLYNOMIAL: u32 = 0xEDB8_8320;

/// CRC-32 of bytes, as gzip has it.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// CRC-32 of `first` followed by `second_len` bytes with checksum `second`.
///
/// # Cost
/// One modular product per bit of the length, whatever the bytes.
pub(super) fn combine(first: u32, second: u32, second_len: u64) -> u32 {
    product(x_to_the_bytes(second_len), first) ^ second
}

/// `x` to the power of `8 * bytes`, modulo the polynomial.
fn x_to_the_bytes(mut bytes: u64) -> u32 {
    let mut power = 1 << 31;
    let mut square = 1 << 23;
    while bytes != 0 {
        if bytes & 1 == 1 {
            power = product(square, power);
        }
        square = product(square, square);
        bytes >>= 1;
    }
    power
}

/// The product of two polynomials (bit 31 is the constant) modulo the polynomial.
fn product(left: u32, mut right: u32) -> u32 {
    let mut sum = 0;
    for bit in (0..32).rev() {
        if left >> bit & 1 == 1 {
            sum ^= right;
        }
        let carry = right & 1;
        right = right >> 1 ^ (POLYNOMIAL * carry);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_halves_make_that_of_the_whole() {
        let bytes: Vec<u8> = (0..100_000u32)
            .map(|it| (it.wrapping_mul(it) >> 7) as u8)
            .collect();
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        for cut in [0, 1, 7, 4_096, 65_535, 99_999, 100_000] {
            let (first, second) = bytes.split_at(cut);
            let combined = combine(crc32(first), crc32(second), second.len() as u64);
            assert_eq!(combined, crc32(&bytes), "{cut}");
        }
    }
}
