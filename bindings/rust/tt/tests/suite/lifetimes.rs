use crate::{apart, floats, values};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;
use tt::{Context, Device, Module, Result, Runtime, RuntimeOpts, Tensor, Transfer};

fn live() -> (i64, i64, i64) {
    let m = tt::memory(Device::CPU).unwrap();
    (m.live_tensors, m.live_nodes, m.live_handles)
}

#[test]
fn hundred_thousand_objects_leave_nothing() {
    apart(RuntimeOpts::new(), || {
        let round = |n: usize| {
            for i in 0..n {
                let x = floats(&[i as f32, 1.0]).requires_grad_(i % 2 == 0).unwrap();
                let y = (&x * 2.0 + &x).sum().unwrap();
                if i % 100 == 0 {
                    let net = tt::sequential([
                        tt::nn::linear(2, 2).unwrap(),
                        Module::from_fn("F", |x| x.exp()).unwrap(),
                    ])
                    .unwrap();
                    let adam = tt::optim::adam(net.parameters().unwrap()).unwrap();
                    net.call(&x).unwrap().sum().unwrap().backward().unwrap();
                    adam.step().unwrap();
                }
                drop(x);
                drop(y);
            }
        };
        round(1000);
        let before = (
            live(),
            tt::memory(Device::CPU).unwrap().in_use,
            tt::memory(Device::CPU).unwrap().reserved,
        );
        round(25_000); // four tensors each
        assert_eq!(
            (
                live(),
                tt::memory(Device::CPU).unwrap().in_use,
                tt::memory(Device::CPU).unwrap().reserved
            ),
            before
        );
        assert_eq!(live(), (0, 0, 0));
    });
}

struct Counted(Arc<AtomicUsize>);
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn memory_and_closures_are_dropped_exactly_once() -> Result<()> {
    let gone = Arc::new(AtomicUsize::new(0));
    let count = || Counted(gone.clone());
    let mut data = vec![1.0f32, 2.0];
    let x = unsafe { Tensor::import(data.as_mut_ptr(), &[2], None, true, count())? };
    let view = x.reshape(&[2, 1])?;
    drop(x);
    assert_eq!(gone.load(Ordering::Relaxed), 0);
    thread::spawn(move || drop(view)).join().unwrap();
    assert_eq!(gone.load(Ordering::Relaxed), 1);
    assert!(unsafe { Tensor::import(data.as_mut_ptr(), &[-1], None, true, count()) }.is_err());
    assert_eq!(gone.load(Ordering::Relaxed), 2);
    let kept = count();
    assert!(floats(&[1.0])
        .register_hook(move |_| {
            let _kept = &kept;
            Ok(None)
        })
        .is_err());
    assert_eq!(gone.load(Ordering::Relaxed), 3);
    let (leaf, kept) = (floats(&[1.0]).requires_grad_(true)?, count());
    leaf.register_hook(move |_| {
        let _kept = &kept;
        Ok(None)
    })?;
    let other = leaf.clone();
    drop(leaf);
    assert_eq!(gone.load(Ordering::Relaxed), 3);
    drop(other);
    assert_eq!(gone.load(Ordering::Relaxed), 4);
    let kept = count();
    let m = Module::from_fn("Keeps", move |x| {
        let _kept = &kept;
        Ok(x.clone())
    })?;
    let copy = m.copy()?; // shares the closure
    drop(m);
    assert_eq!(gone.load(Ordering::Relaxed), 4);
    copy.call(&floats(&[1.0]))?;
    drop(copy);
    assert_eq!(gone.load(Ordering::Relaxed), 5);
    Ok(())
}

#[test]
fn drops_in_any_order_and_on_any_thread() -> Result<()> {
    let build = || -> Result<_> {
        let net = tt::nn::linear(3, 1)?;
        let w = net.parameters()?;
        let adam = tt::optim::adam(&w)?;
        let schedule = tt::lr::exponential(&adam, 0.9)?;
        let loss = net.call(&tt::ones(&[2, 3])?)?.sum()?;
        let node = loss.grad_fn()?.unwrap();
        Ok((net, w, adam, schedule, loss, node))
    };
    let (net, w, adam, schedule, loss, node) = build()?;
    drop((net, w));
    loss.backward()?;
    adam.step()?;
    drop(adam);
    schedule.step()?;
    drop(loss);
    assert!(!node.name().is_empty());
    let (net, w, adam, schedule, loss, node) = build()?;
    let (net, all) = unsafe { (Transfer::new(net), Transfer::new((adam, schedule))) };
    let all = [
        thread::spawn(move || drop((all, loss))),
        thread::spawn(move || drop((net, node))),
        thread::spawn(move || drop(w)),
    ];
    all.into_iter().for_each(|t| t.join().unwrap());
    Ok(())
}

#[test]
fn threads_have_contexts_of_their_own() -> Result<()> {
    let w = floats(&[2.0]).requires_grad_(true)?;
    let _off = tt::grad_guard(false);
    let shared = w.clone();
    let t = thread::spawn(move || -> Result<Vec<f32>> {
        assert!(tt::grad_enabled());
        tt::manual_seed(1)?;
        (&shared * &shared).sum()?.backward()?;
        values(&shared.grad()?.unwrap())
    });
    assert_eq!(t.join().unwrap()?, [4.0]);
    assert!(!tt::grad_enabled() && tt::enable_grad(tt::grad_enabled));
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..1000).for_each(|_| drop(tt::no_grad(|| &w + &w))));
        }
    });
    Ok(())
}

#[test]
fn inputs_may_be_written_during_a_call() -> Result<()> {
    const N: usize = 50_000;
    let holder = |i: i64| -> Result<Module> {
        let m = tt::nn::identity()?;
        m.register_buffer("index", Some(&Tensor::from_vec(vec![i; N], &[N as i64])?), true)?;
        Ok(m)
    };
    let index = Tensor::from_vec(vec![0i64; N], &[N as i64])?;
    let also = index.clone();
    let writer = thread::spawn(move || -> Result<()> {
        let m = tt::nn::identity()?;
        m.register_buffer("index", Some(&also), true)?;
        let states = [holder(1 << 40)?.state_dict()?, holder(0)?.state_dict()?];
        for i in 0..300 {
            states.iter().try_for_each(|state| m.load_state_dict(state))?;
            thread::sleep(std::time::Duration::from_micros(i * 7919 % 300));
        }
        Ok(())
    });
    let x = tt::ones(&[3])?;
    while !writer.is_finished() {
        let _ = (
            x.index_select(0, &index),
            x.index_add(0, &index, &tt::ones(&[N as i64])?),
            index.nonzero(),
        );
    }
    writer.join().unwrap()
}

#[test]
fn contexts_move_between_threads() -> Result<()> {
    let runtime = Runtime::new(RuntimeOpts::new().threads(2))?;
    let mut c = Context::new(Some(&runtime))?;
    assert_eq!(c.run(tt::num_threads), 2);
    let first = c.run(|| tt::randn(&[2]))?;
    let (c, second) = thread::spawn(move || {
        let t = c.run(|| tt::randn(&[2])).unwrap();
        (c, t)
    })
    .join()
    .unwrap();
    drop(runtime);
    drop(c);
    assert_ne!(values(&first)?, values(&second)?); // successive draws of one generator
    assert_eq!(values(&(first - second))?.len(), 2);
    Ok(())
}

// Is T Send or Sync? An inherent method that requires it is preferred to the trait's default.
struct Asked<T>(std::marker::PhantomData<T>);
trait No {
    fn send(&self) -> bool {
        false
    }
    fn sync(&self) -> bool {
        false
    }
}
impl<T> No for &Asked<T> {}
impl<T: Send> Asked<T> {
    fn send(&self) -> bool {
        true
    }
}
impl<T: Sync> Asked<T> {
    fn sync(&self) -> bool {
        true
    }
}
macro_rules! threads_of {
    ($t:ty) => {{
        let asked = &Asked::<$t>(Default::default());
        (asked.send(), asked.sync())
    }};
}

#[test]
fn what_other_threads_may_have() {
    assert_eq!(
        [
            threads_of!(Module),
            threads_of!(tt::Optimizer),
            threads_of!(tt::Scheduler),
            threads_of!(tt::Ddp),
            threads_of!(tt::Compiled)
        ],
        [(false, false); 5]
    );
    assert_eq!(
        [threads_of!(Tensor), threads_of!(Runtime), threads_of!(tt::Cancel), threads_of!(tt::Node)],
        [(true, true); 4]
    );
    assert_eq!(
        [threads_of!(tt::Generator), threads_of!(tt::StateDict), threads_of!(tt::SafeTensors)],
        [(true, true); 3]
    );
    assert_eq!(
        [threads_of!(tt::Op), threads_of!(tt::graph::Graph), threads_of!(tt::graph::Plan)],
        [(true, true); 3]
    );
    assert_eq!([threads_of!(Transfer<Module>), threads_of!(Context)], [(true, false); 2]);
    assert_eq!(
        [
            threads_of!(tt::Profile),
            threads_of!(tt::Checkpoint),
            threads_of!(tt::FunctionCall),
            threads_of!(tt::ModeGuard)
        ],
        [(false, false); 4]
    );
}

thread_local! {
    static LAST: std::cell::RefCell<Option<Tensor>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn tensors_in_thread_locals_outlive_the_context() {
    thread::spawn(|| {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                assert_eq!(tt::ones(&[2]).unwrap().sum().unwrap().item::<f32>().unwrap(), 2.0);
            }
        }
        thread_local! {
            static LATE: Late = const { Late };
        }
        LATE.with(|_| ());
        LAST.with(|l| *l.borrow_mut() = Some(floats(&[1.0]).exp().unwrap()));
    })
    .join()
    .unwrap();
}
