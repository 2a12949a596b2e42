//! The feature `num-complex`: the crate's types are tensor elements and convert to ours.
use num_complex::Complex;
use tt::{DType, Result, Scalar, Tensor};

#[test]
fn complex_numbers_are_elements() -> Result<()> {
    let i = Complex::new(0.0f64, 1.0);
    let x = Tensor::from([i, i + 2.0]);
    assert_eq!(x.dtype(), DType::C128);
    assert_eq!(x.mul(&x)?.to_vec::<Complex<f64>>()?, [i * i, (i + 2.0) * (i + 2.0)]);
    assert_eq!(Tensor::from(vec![Complex::new(1.0f32, 0.0)]).dtype(), DType::C64);
    assert_eq!(Tensor::from(2.5f32).item::<Complex<f32>>()?, Complex::new(2.5, 0.0));
    assert_eq!(Scalar::from(i), Scalar::Complex(tt::Complex { re: 0.0, im: 1.0 }));
    assert_eq!(Complex::from(tt::Complex { re: 1, im: 2 }), Complex::new(1, 2));
    Ok(())
}
