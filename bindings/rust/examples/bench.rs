//! `a + b` of 4×4 by this crate and by the C call, in turns in one process: nanoseconds of the fastest rounds, and their ratio.
use std::ptr::null_mut;
use std::time::Instant;
use tt::Handle;

const CALLS: usize = 20_000;

fn fastest(rounds: &mut [f64]) -> f64 {
    rounds.sort_by(|a, b| a.total_cmp(b));
    rounds[..rounds.len() / 4].iter().sum::<f64>() / (rounds.len() / 4) as f64
}

fn timed(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..CALLS).for_each(|_| f());
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

fn main() -> tt::Result<()> {
    let (a, b) = (tt::randn(&[4, 4])?, tt::randn(&[4, 4])?);
    let mut c = null_mut();
    assert_eq!(unsafe { tt_sys::tt_ctx_new(tt::Runtime::current()?.raw(), &mut c) }, 0);
    let (x, y) = (a.raw(), b.raw());
    let (mut by_c, mut by_method, mut by_trait) = (vec![], vec![], vec![]);
    for _ in 0..200 {
        by_c.push(timed(|| unsafe {
            let mut out = null_mut();
            assert_eq!(tt_sys::tt_add(c, x, y, &mut out), 0);
            tt_sys::tt_tensor_release(out);
        }));
        by_method.push(timed(|| drop(a.add(&b).unwrap())));
        by_trait.push(timed(|| drop(&a + &b)));
    }
    let (c_ns, method, operator) =
        (fastest(&mut by_c), fastest(&mut by_method), fastest(&mut by_trait));
    println!(
        "C {:.1} ns, a.add(&b) {:.1} ns ({:.3}), &a + &b {:.1} ns ({:.3})",
        c_ns,
        method,
        method / c_ns,
        operator,
        operator / c_ns
    );
    unsafe { tt_sys::tt_ctx_release(c) };
    Ok(())
}
