//! The feature `half`: the crate's types are tensor elements and convert to ours.
use half::{bf16, f16};
use tt::{DType, Result, Scalar, Tensor, BF16, F16};

#[test]
fn halves_are_elements() -> Result<()> {
    let x = Tensor::from([f16::from_f32(1.5), f16::from_f32(-0.25)]);
    assert_eq!(x.dtype(), DType::F16);
    assert_eq!(x.to_dtype(DType::F32)?.to_vec::<f32>()?, [1.5, -0.25]);
    assert_eq!((&x * 2.0).to_vec::<f16>()?, [f16::from_f32(3.0), f16::from_f32(-0.5)]);
    let y = Tensor::from([[bf16::from_f32(2.0)]]);
    assert_eq!((y.dtype(), y.item::<bf16>()?), (DType::BF16, bf16::from_f32(2.0)));
    assert!(Tensor::from(0.1f32).item::<f16>().is_err());
    assert_eq!(Scalar::from(f16::from_f32(0.5)), Scalar::Float(0.5));
    Ok(())
}

#[test]
fn both_kinds_round_alike() {
    for bits in (0..=u32::MAX).step_by(9973) {
        let value = f32::from_bits(bits);
        if value.is_nan() {
            continue;
        }
        assert_eq!(F16::from_f32(value), F16::from(f16::from_f32(value)), "{}", value);
        assert_eq!(bf16::from(BF16::from_f32(value)), bf16::from_f32(value), "{}", value);
    }
}
