//! Compares the crate's calls with the C calls, alternately in one process: `cargo run --release
//! --example bench [ROUNDS]`. Times are medians of the rounds; a ratio is the median of the rounds'
//! ratios.
use std::ptr::{null, null_mut};
use std::time::Instant;
use tt::{idx, Handle, Tensor};
use tt_sys as sys;

const CALLS: usize = 2_000; // in a round, which should be shorter than a time slice of the system

/// Returns the nanoseconds per call.
fn timed(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..CALLS).for_each(|_| call());
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs two calls alternately and prints a table row.
fn compare(name: &str, rounds: usize, mut c: impl FnMut(), mut rust: impl FnMut()) {
    let (mut times, mut ratios) = ((vec![], vec![]), vec![]);
    for _ in 0..rounds {
        let (of_c, of_rust) = (timed(&mut c), timed(&mut rust));
        times.0.push(of_c);
        times.1.push(of_rust);
        ratios.push(of_rust / of_c);
    }
    println!(
        "| {name} | {:.1} | {:.1} | {:.3} |",
        median(times.0),
        median(times.1),
        median(ratios)
    );
}

fn main() -> tt::Result<()> {
    let rounds = std::env::args().nth(1).map_or(2_000, |n| n.parse().expect("a number of rounds"));
    let (a, b) = (tt::randn(&[4, 4])?, tt::randn(&[4, 4])?);
    let (double, single) = (Tensor::from(2.5f64), Tensor::from(2.5f32));
    let integer = Tensor::from(7i64);
    let mut c = null_mut();
    // SAFETY: the runtime is live, and `c` receives the context.
    assert_eq!(unsafe { sys::tt_ctx_new(tt::Runtime::current()?.raw(), &mut c) }, 0);
    // SAFETY: context and tensors are live; the result is released.
    let add = || unsafe {
        let mut out = null_mut();
        assert_eq!(sys::tt_add(c, a.raw(), b.raw(), &mut out), 0);
        sys::tt_tensor_release(out);
    };
    let item_f64 = || {
        let mut value = 0.0;
        // SAFETY: context and tensor are live.
        assert_eq!(unsafe { sys::tt_item_f64(c, double.raw(), &mut value) }, 0);
        assert_eq!(value, 2.5);
    };
    let item_single = || {
        let mut value = 0.0;
        // SAFETY: context and tensor are live.
        assert_eq!(unsafe { sys::tt_item_f64(c, single.raw(), &mut value) }, 0);
        assert_eq!(value, 2.5);
    };
    let item_i64 = || {
        let mut value = 0;
        // SAFETY: context and tensor are live.
        assert_eq!(unsafe { sys::tt_item_i64(c, integer.raw(), &mut value) }, 0);
        assert_eq!(value, 7);
    };
    let item = || {
        let mut value = sys::tt_scalar::default();
        // SAFETY: context and tensor are live.
        assert_eq!(unsafe { sys::tt_item(c, double.raw(), &mut value) }, 0);
        assert!(value.kind == sys::TT_SCALAR_FLOAT && value.re == 2.5);
    };
    let net = tt::nn::linear(4, 4)?;
    // SAFETY: context, module and tensor are live; the result is released.
    let forward = || unsafe {
        let mut out = null_mut();
        assert_eq!(sys::tt_module_call(c, net.raw(), a.raw(), &mut out), 0);
        sys::tt_tensor_release(out);
    };
    // SAFETY: context and tensors are live; the result is released.
    let cat = || unsafe {
        let (mut out, list) = (null_mut(), [a.raw() as *const _, b.raw() as *const _]);
        assert_eq!(sys::tt_cat(c, list.as_ptr(), 2, null(), &mut out), 0);
        sys::tt_tensor_release(out);
    };
    // SAFETY: context, tensor and index are live; the result is released.
    let row = || unsafe {
        let at = sys::tt_index { kind: sys::TT_IDX_INT, start: 1, ..Default::default() };
        let mut out = null_mut();
        assert_eq!(sys::tt_index_get(c, a.raw(), &at, 1, &mut out), 0);
        sys::tt_tensor_release(out);
    };
    println!("| call | C, ns | Rust, ns | Rust by C |\n|---|---|---|---|");
    compare("`a.add(&b)?`, 4x4", rounds, add, || drop(a.add(&b).unwrap()));
    compare("`&a + &b`, 4x4", rounds, add, || drop(&a + &b));
    compare("`x.item::<f64>()?` of float64", rounds, item_f64, || {
        assert_eq!(double.item::<f64>().unwrap(), 2.5);
    });
    compare("`x.item::<f64>()?` of float64, `tt_item`", rounds, item, || {
        assert_eq!(double.item::<f64>().unwrap(), 2.5);
    });
    compare("`x.item::<f32>()?` of float32", rounds, item_single, || {
        assert_eq!(single.item::<f32>().unwrap(), 2.5);
    });
    compare("`x.item::<f32>()?` of float64", rounds, item_f64, || {
        assert_eq!(double.item::<f32>().unwrap(), 2.5);
    });
    compare("`x.item::<i64>()?` of int64", rounds, item_i64, || {
        assert_eq!(integer.item::<i64>().unwrap(), 7);
    });
    compare("`x.item::<usize>()?` of int64", rounds, item_i64, || {
        assert_eq!(integer.item::<usize>().unwrap(), 7);
    });
    compare("`net.forward(&a)?`, Linear(4, 4)", rounds, forward, || {
        drop(net.forward(&a).unwrap());
    });
    compare("`tt::cat(&[&a, &b])?`", rounds, cat, || drop(tt::cat(&[&a, &b]).unwrap()));
    compare("`a.index_get(idx![1])?`", rounds, row, || drop(a.index_get(idx![1]).unwrap()));
    // SAFETY: the context is this function's own.
    unsafe { sys::tt_ctx_release(c) };
    Ok(())
}
