//! Tests of the crate's public interface.
mod callbacks;
mod conversions;
mod data;
mod distributed;
mod errors;
mod graphs;
mod host;
mod layers;
mod lifetimes;
mod operators;
mod training;
mod utils;

use tt::{Context, Result, Runtime, RuntimeOpts, Tensor};

/// Makes a vector of floats.
fn floats(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len() as i64]).unwrap()
}

/// Runs f on a runtime that no other test uses.
fn apart<R>(opts: RuntimeOpts, f: impl FnOnce() -> R) -> R {
    let runtime = Runtime::new(opts).unwrap();
    Context::new(Some(&runtime)).unwrap().run(f)
}

fn temporary(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("tt_rust_{}_{}", std::process::id(), name))
}

fn values(t: &Tensor) -> Result<Vec<f32>> {
    t.to_vec()
}
