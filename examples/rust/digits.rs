//! The data and the network that the examples share.
use std::error::Error;
use std::fmt::Display;
use tt::{nn, Module, Tensor};

pub const PIXELS: usize = 64; // per image
pub const CLASSES: usize = 10;

/// Images (N, 1, 8, 8) with pixel values in 0 … 1, and labels (N).
pub struct Digits {
    pub images: Tensor,
    pub labels: Tensor,
}

/// A result with any error, from any thread.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Reads rows of 64 pixels (0-16) and one label.
pub fn read(path: &str) -> Outcome<Digits> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let (mut pixels, mut labels) = (vec![], vec![]);
    for (i, line) in text.lines().enumerate() {
        let wrong = |why: &dyn Display| format!("{path}:{}: {why}", i + 1);
        let row: Result<Vec<u8>, _> = line.split(',').map(str::parse).collect();
        let row = row.map_err(|e| wrong(&e))?;
        if row.len() != PIXELS + 1
            || usize::from(row[PIXELS]) >= CLASSES
            || row[..PIXELS].iter().any(|p| *p > 16)
        {
            return Err(wrong(&"not 64 pixels of 0 to 16 and a digit").into());
        }
        pixels.extend(row[..PIXELS].iter().map(|p| f32::from(*p) / 16.0));
        labels.push(i64::from(row[PIXELS]));
    }
    let n = labels.len() as i64;
    let images = Tensor::from_vec(pixels, &[n, 1, 8, 8])?;
    Ok(Digits { images, labels: Tensor::from(labels) })
}

/// The network: (N, 1, 8, 8) -> (N, 32, 2, 2) -> (N, 10).
pub fn net() -> tt::Result<Module> {
    let padded = nn::Conv2dOpts::new().padding(&[1]);
    tt::sequential([
        nn::conv2d_with(1, 16, &[3], padded)?,
        nn::batch_norm2d(16)?,
        nn::relu()?,
        nn::max_pool2d(&[2])?,
        nn::conv2d_with(16, 32, &[3], padded)?,
        nn::batch_norm2d(32)?,
        nn::relu()?,
        nn::max_pool2d(&[2])?,
        nn::flatten()?,
        nn::dropout_with(nn::DropoutOpts::new().p(0.3))?,
        nn::linear(32 * 2 * 2, CLASSES as i64)?,
    ])
}
