//! The two 16-bit floating-point types.
use std::cmp::Ordering;
use std::fmt;

/// An IEEE half-precision number.
///
/// ```
/// use tt::F16;
/// assert_eq!(F16::from_f32(1.0 / 3.0).to_f32(), 0.33325195);
/// assert_eq!(f32::from(F16::from_bits(0x3c00)), 1.0);
/// ```
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(pub u16);

/// A bfloat16 number: the upper half of an f32.
///
/// ```
/// use tt::BF16;
/// assert_eq!(BF16::from_f32(1.0 / 3.0).to_f32(), 0.33398438);
/// ```
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct BF16(pub u16);

impl F16 {
    /// Rounds to the nearest number, ties to even. Numbers that are too large become infinite.
    pub fn from_f32(value: f32) -> F16 {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        if magnitude > 0x7f80_0000 {
            return F16(sign | 0x7e00 | (magnitude >> 13) as u16 & 0x3ff); // nan keeps its payload
        }
        if magnitude >= 0x4780_0000 {
            return F16(sign | 0x7c00); // 65536 and above, infinity
        }
        let half = if magnitude < 0x3880_0000 {
            // Below 2^-14 the spacing is 2^-24, like that of f32 at 0.5: adding 0.5 rounds.
            let rounded = f32::from_bits(magnitude) + 0.5;
            rounded.to_bits() - 0.5f32.to_bits()
        } else {
            let odd = magnitude >> 13 & 1;
            (magnitude - 0x3800_0000 + 0xfff + odd) >> 13
        };
        F16(sign | half as u16)
    }
    /// Converts exactly.
    pub fn to_f32(self) -> f32 {
        let sign = u32::from(self.0 & 0x8000) << 16;
        let exponent = u32::from(self.0 >> 10 & 0x1f);
        let fraction = u32::from(self.0 & 0x3ff);
        let magnitude = match exponent {
            0 => (fraction as f32 / 16_777_216.0).to_bits(), // units of 2^-24
            31 => 0x7f80_0000 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(sign | magnitude)
    }
}

impl BF16 {
    /// Rounds to the nearest number, ties to even. Numbers that are too large become infinite.
    pub fn from_f32(value: f32) -> BF16 {
        let bits = value.to_bits();
        if value.is_nan() {
            return BF16((bits >> 16) as u16 | 0x40);
        }
        let odd = bits >> 16 & 1;
        BF16(((bits + 0x7fff + odd) >> 16) as u16)
    }
    /// Converts exactly.
    pub fn to_f32(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

macro_rules! half {
    ($($t:ident)*) => { $(
        impl $t {
            /// Makes a number from its bits.
            pub const fn from_bits(bits: u16) -> $t {
                $t(bits)
            }
            /// Returns the bits.
            pub const fn to_bits(self) -> u16 {
                self.0
            }
        }
        impl From<$t> for f32 {
            fn from(value: $t) -> f32 {
                value.to_f32()
            }
        }
        impl From<$t> for f64 {
            fn from(value: $t) -> f64 {
                value.to_f32().into()
            }
        }
        /// Compares the numbers, not their bits.
        impl PartialEq for $t {
            fn eq(&self, other: &$t) -> bool {
                self.to_f32() == other.to_f32()
            }
        }
        impl PartialOrd for $t {
            fn partial_cmp(&self, other: &$t) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }
        impl fmt::Debug for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )* };
}
half!(F16 BF16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_f32() {
        for bits in 0..=u16::MAX {
            let (h, b) = (F16(bits), BF16(bits));
            if h.to_f32().is_nan() {
                assert!(F16::from_f32(h.to_f32()).to_f32().is_nan());
            } else {
                assert_eq!(F16::from_f32(h.to_f32()).0, bits);
            }
            if b.to_f32().is_nan() {
                assert!(BF16::from_f32(b.to_f32()).to_f32().is_nan());
            } else {
                assert_eq!(BF16::from_f32(b.to_f32()).0, bits);
            }
        }
    }

    #[test]
    fn ties_go_to_even() {
        let cases = [
            (1.0 + 1.0 / 2048.0, 0x3c00), // halfway between 1 and the next number
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (65519.9, 0x7bff),
            (65520.0, 0x7c00),
            (2f32.powi(-25), 0), // half of the smallest number
            (2f32.powi(-25) * 1.01, 1),
            (-2f32.powi(-24), 0x8001),
            (f32::INFINITY, 0x7c00),
        ];
        for (value, bits) in cases {
            assert_eq!(F16::from_f32(value).0, bits, "{}", value);
        }
        assert_eq!(BF16::from_f32(f32::from_bits(0x3f80_8000)).0, 0x3f80);
        assert_eq!(BF16::from_f32(f32::from_bits(0x3f81_8000)).0, 0x3f82);
        assert_eq!(BF16::from_f32(f32::MAX).to_f32(), f32::INFINITY);
    }
}
