//! A first program in ten lines.
use tt::{Result, Tensor};

fn main() -> Result<()> {
    let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?.requires_grad_(true)?;
    let loss = (x.exp()? * 2.0).sum()?;
    loss.backward()?;
    println!("{}\n{}", loss.item::<f32>()?, x.grad()?.unwrap());
    Ok(())
}
