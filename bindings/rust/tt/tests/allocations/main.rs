//! Tests that calls allocate nothing on Rust's heap. libtt has its own heaps.
#![deny(unsafe_op_in_unsafe_fn)]
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use tt::{Result, Tensor};

thread_local!(static COUNT: Cell<usize> = const { Cell::new(0) });

struct Counting;

// SAFETY: the system's allocator does the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(p, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations of f.
fn allocations(f: impl FnOnce() -> Result<()>) -> Result<usize> {
    let before = COUNT.with(Cell::get);
    f()?;
    Ok(COUNT.with(Cell::get) - before)
}

#[test]
fn items_and_operators_allocate_nothing() -> Result<()> {
    let (x, n) = (Tensor::from(2.5f64), Tensor::from(7i64));
    let mut sum = Tensor::from([1.0f32, 2.0]);
    let other = sum.copy()?;
    let mut steps = || -> Result<()> {
        assert_eq!((x.item::<f64>()?, x.item::<f32>()?), (2.5, 2.5));
        assert_eq!((n.item::<i64>()?, n.item::<usize>()?, n.item::<u8>()?), (7, 7, 7));
        drop((&sum + &other).clone());
        sum += &other * 2.0;
        drop(tt::cat(&[&sum, &other])?.index_get(tt::idx![..2])?);
        assert_eq!(
            (sum.shape(), sum.dtype(), sum.device()),
            (&[2][..], other.dtype(), other.device())
        );
        Ok(())
    };
    steps()?; // creates the thread's context
    assert_eq!(allocations(steps)?, 0);
    assert_eq!(allocations(|| x.to_vec::<f64>().map(drop))?, 1); // allocations do count
    Ok(())
}
