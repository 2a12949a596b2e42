use crate::{apart, floats, values};
use std::alloc::{alloc, dealloc, Layout};
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Mutex;
use tt::opts::*;
use tt::{Device, DeviceType, Error, Op, Result, RuntimeOpts, Status, Tensor, Value};

struct Memory(AtomicI64);
unsafe impl tt::Allocator for Memory {
    fn alloc(&self, size: usize, align: usize) -> *mut c_void {
        self.0.fetch_add(size as i64, Ordering::Relaxed);
        unsafe { alloc(Layout::from_size_align(size, align).unwrap()) as *mut c_void }
    }
    unsafe fn free(&self, p: *mut c_void, size: usize, align: usize) {
        self.0.fetch_sub(size as i64, Ordering::Relaxed);
        dealloc(p as *mut u8, Layout::from_size_align(size, align).unwrap())
    }
}

struct Pool(AtomicI64);
unsafe impl tt::Executor for Pool {
    fn num_threads(&self) -> i32 {
        2
    }
    fn parallel_for(&self, n: i64, grain: i64, body: &(dyn Fn(i64, i64) + Sync)) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::thread::scope(|s| {
            for part in 0..2 {
                s.spawn(move || {
                    (0..n)
                        .step_by(grain as usize)
                        .filter(|i| i / grain % 2 == part)
                        .for_each(|i| body(i, n.min(i + grain)))
                });
            }
        });
    }
}

struct Log(Mutex<Vec<String>>);
impl tt::Logger for Log {
    fn log(&self, level: tt::LogLevel, message: &str) {
        self.0.lock().unwrap().push(format!("{:?} {}", level, message));
        // An error of the shared runtime, which has no logger.
        assert!(tt::ones(&[2]).and_then(|x| x.reshape(&[3])).is_err());
        assert!(!message.contains("select"), "a logger's panic is nobody's");
    }
}

#[test]
fn custom_allocator_executor_and_logger() {
    static MEMORY: Memory = Memory(AtomicI64::new(0));
    static POOL: Pool = Pool(AtomicI64::new(0));
    static LOG: Log = Log(Mutex::new(Vec::new()));
    apart(RuntimeOpts::new().allocator(&MEMORY).executor(&POOL).logger(&LOG), || {
        let x = tt::ones(&[1 << 18]).unwrap();
        assert_eq!((&x + &x).sum().unwrap().item::<f32>().unwrap(), (1 << 19) as f32);
        assert!(MEMORY.0.load(Ordering::Relaxed) > 1 << 20);
        assert!(POOL.0.load(Ordering::Relaxed) > 0);
        assert!(x.reshape(&[3]).is_err() && x.select(0, -1 << 40).is_err());
        assert!(LOG
            .0
            .lock()
            .unwrap()
            .iter()
            .any(|line| line.starts_with("Debug ") && line.contains("reshape")));
        tt::trim().unwrap();
    });
    assert_eq!(MEMORY.0.load(Ordering::Relaxed), 0);
}

#[test]
fn live_objects_and_profile() -> Result<()> {
    apart(RuntimeOpts::new(), || {
        let (x, _y) = (tt::ones(&[1000])?, tt::ones(&[2])?);
        let _net = tt::nn::linear(2, 2)?;
        let live = unsafe { tt::live()? };
        assert_eq!(
            (live[0].kind.as_str(), &live[0].shape[..], live[0].bytes, live[0].device),
            ("tensor", &[1000][..], 4000, Some(Device::CPU))
        );
        assert!(
            live.iter().any(|row| row.kind == "module")
                && tt::memory(Device::CPU)?.live_tensors == 4
        );
        let (sum, rows) = tt::profile(|| (&x + &x).sum().unwrap().item::<f32>().unwrap())?;
        assert_eq!(sum, 2000.0);
        assert!(rows.iter().any(|r| r.op == "add" && r.calls == 1 && r.total_ns >= r.self_ns));
        let options =
            tt::ProfileOptions { with_flops: true, record_shapes: true, ..Default::default() };
        let profile = tt::Profile::start(options)?;
        tt::region("twice", || drop(&x + &x))?;
        profile.stop()?;
        let events = profile.events()?;
        let region = events.iter().find(|e| e.kind == tt::EventKind::Region).unwrap();
        assert_eq!((region.name.as_str(), region.flops), ("twice", 1000.0));
        let inside = events.iter().find(|e| e.parent == region.id).unwrap();
        assert_eq!((inside.name.as_str(), &inside.shapes[..]), ("add", &[1, 1000, 1, 1000, 0][..]));
        assert!(profile.sums()?.iter().any(|s| s.name == "add" && s.calls == 1));
        assert_eq!(profile.dropped()?, 0);
        assert!(profile.chrome_trace("/no/such/folder/trace.json").is_err());
        drop(profile);
        let mut seen = vec![];
        tt::trace_dispatch(
            |op, slot, depth| seen.push(format!("{} {} {}", op, slot, depth)),
            || drop(&x + &x),
        )?;
        assert!(seen.contains(&"add cpu 0".to_string()), "{:?}", seen);
        let (mut outer, mut inner) = (0, 0);
        tt::trace_dispatch(
            |_, _, _| {
                outer += 1;
                tt::trace_dispatch(|_, _, _| unreachable!(), || drop(&x + &x)).unwrap();
            },
            || {
                tt::trace_dispatch(|_, _, _| inner += 1, || drop(&x + &x)).unwrap();
                drop((&x + &x, &x + &x))
            },
        )?;
        assert_eq!((outer, inner), (2 * inner, inner));
        let panics = catch_unwind(AssertUnwindSafe(|| {
            tt::trace_dispatch(|_, _, _| panic!("no more"), || drop(&x + &x))
        }));
        assert_eq!(*panics.unwrap_err().downcast_ref::<&str>().unwrap(), "no more");
        assert!(
            tt::build_info().contains(&tt::version())
                && tt::manifest().contains("\"matmul\"")
                && tt::isa()? >= tt::Isa::Baseline
        );
        tt::synchronize(None)?;
        tt::synchronize(Some(Device::CPU))?;
        tt::set_num_threads(1)?;
        // The CPU ignores it.
        tt::set_cuda_math_with(tt::opts::CudaMathOpts::new().matmul_tf32(true).cudnn(false))?;
        tt::set_cuda_math()?;
        assert_eq!(Device::count(DeviceType::Cpu)?, 1);
        assert_eq!(
            unsafe { tt::load_cuda(Some("/nowhere.so".as_ref())) }.unwrap_err().status,
            Status::Io
        );
        Ok(())
    })
}

struct Twice;
impl tt::Operator for Twice {
    fn compute(&self, args: &[Value]) -> Result<Vec<Option<Tensor>>> {
        match args {
            [Value::Tensor(x), Value::Int(k)] => Ok(vec![Some(x * *k)]),
            _ => panic!("other arguments"),
        }
    }
    fn backward(
        &self,
        grads: &[Option<Tensor>],
        args: &[Value],
        results: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        assert_eq!((args.len(), results.len()), (2, 1));
        Ok(vec![grads[0].as_ref().map(|g| g * 100.0)])
    }
    fn differentiable(&self) -> bool {
        true
    }
}

#[test]
fn operators_by_name_and_custom_operators() -> Result<()> {
    apart(RuntimeOpts::new(), || {
        tt::register_op("times(x: Tensor, k: Int) -> Tensor", Twice)?;
        let times = Op::find("times")?;
        assert_eq!(
            (times.name().as_str(), times.schema().as_str()),
            ("times", "times(x: Tensor, k: Int) -> Tensor")
        );
        let x = floats(&[1.0, 2.0]).requires_grad_(true)?;
        let y = times.call(&[Value::Tensor(x.clone()), Value::Int(3)])?.remove(0);
        y.sum()?.backward()?;
        assert_eq!(
            (values(&y)?, values(&x.grad()?.unwrap())?),
            (vec![3.0, 6.0], vec![100.0, 100.0])
        );
        assert!(times.call(&[Value::Int(3)]).is_err() && Op::find("nothing").is_err());
        let full = Op::find("full")?.call(&[Value::Ints(vec![2]), Value::Scalar(2.5.into())])?;
        assert_eq!(values(&full[0])?, [2.5, 2.5]);
        let einsum = Op::find("einsum")?
            .call(&[Value::Str("i->".into()), Value::Tensors(vec![Some(full[0].clone())])])?;
        assert_eq!(einsum[0].item::<f32>()?, 5.0);
        let (copy, args) =
            (Op::find("copy_")?, [Value::Tensor(full[0].clone()), Value::Tensor(y.detach()?)]);
        assert!(
            copy.mutates()
                && !times.mutates()
                && copy.call(&args).unwrap_err().status == Status::InvalidArg
        );
        unsafe { copy.call_mut(&args)? };
        assert_eq!(values(&full[0])?, [3.0, 6.0]);
        assert_eq!(tt::register_op("broken", Twice).unwrap_err().status, Status::InvalidArg);
        Ok(())
    })
}

struct Ram;
unsafe impl tt::Backend for Ram {
    fn alloc(&self, bytes: i64) -> *mut c_void {
        unsafe { alloc(Layout::from_size_align(bytes as usize, 64).unwrap()) as *mut c_void }
    }
    unsafe fn free(&self, p: *mut c_void, bytes: i64) {
        dealloc(p as *mut u8, Layout::from_size_align(bytes as usize, 64).unwrap())
    }
    unsafe fn copy(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        bytes: i64,
        _kind: tt::CopyKind,
    ) -> Result<()> {
        std::ptr::copy_nonoverlapping(src as *const u8, dst as *mut u8, bytes as usize);
        Ok(())
    }
    fn compute(&self, op: &str, args: &[Value]) -> Result<Vec<Option<Tensor>>> {
        match (op, args) {
            ("exp", [Value::Tensor(x)]) => {
                let out = tt::empty_with(x.shape(), EmptyOpts::new().device(x.device()))?;
                let (from, to) = (x.data_ptr() as *const f32, out.data_ptr() as *mut f32);
                (0..x.numel() as usize).for_each(|i| unsafe { *to.add(i) = (*from.add(i)).exp() });
                Ok(vec![Some(out)])
            }
            ("sin", _) => panic!("no sine here"),
            _ => Err(Error::new(Status::NotImplemented, "left to the CPU")),
        }
    }
}

#[test]
fn a_custom_device() -> Result<()> {
    apart(RuntimeOpts::new(), || {
        let ram = tt::register_backend("ram", Ram)?;
        assert_eq!((ram.kind, "ram".parse::<Device>()?), (DeviceType::Ext, ram));
        let x = floats(&[0.0, 1.0]).to_device(ram)?;
        let y = &x.exp()? + &x; // exp on the device, + on the CPU
        assert_eq!(y.device(), ram);
        assert_eq!(values(&y.to_device(Device::CPU)?)?, [1.0, 1.0f32.exp() + 1.0]);
        assert_eq!(x.sin().unwrap_err().panic_message(), Some("no sine here"));
        assert!(x.reshape(&[7]).unwrap_err().cause.is_none());
        Ok(())
    })
}

#[test]
fn dlpack_there_and_back() -> Result<()> {
    for versioned in [false, true] {
        let x = floats(&[1.0, 2.0]);
        let managed = x.to_dlpack(versioned)?;
        let y = unsafe { Tensor::from_dlpack(managed, versioned)? };
        assert_eq!(x.data_ptr(), y.data_ptr());
        drop(x);
        assert_eq!(values(&y)?, [1.0, 2.0]);
    }
    Ok(())
}
