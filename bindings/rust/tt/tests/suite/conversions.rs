//! Conversions of numbers, arrays, indices and names.
use crate::floats;
use std::panic::{catch_unwind, AssertUnwindSafe, Location};
use std::sync::{Arc, Mutex};
use tt::{idx, Complex, DType, Index, Result, Scalar, StateDict, Status, Tensor, BF16, F16};

#[test]
fn scalars_from_every_number() {
    let all: [Scalar; 12] = [
        1u8.into(),
        1u16.into(),
        1u32.into(),
        1u64.into(),
        1u128.into(),
        1usize.into(),
        1i8.into(),
        1i16.into(),
        1i32.into(),
        1i64.into(),
        1i128.into(),
        1isize.into(),
    ];
    assert!(all.iter().all(|s| *s == Scalar::Int(1)));
    assert_eq!(Scalar::from(u64::MAX), Scalar::Float(u64::MAX as f64));
    assert_eq!(Scalar::from(0.1f32), Scalar::Float(0.1f32.into()));
    assert_eq!(Scalar::from(F16::from_f32(0.5)).to_string(), "0.5");
    assert_eq!(Scalar::from(Complex { re: 1.0f32, im: -2.0 }).to_string(), "1-2i");
}

#[test]
fn items_without_loss_or_not_at_all() -> Result<()> {
    let x = Tensor::from(2.5f32);
    assert_eq!((x.item::<f32>()?, x.item::<f64>()?, x.item::<F16>()?), (2.5, 2.5, F16(0x4100)));
    assert_eq!(x.item::<Complex<f32>>()?, Complex { re: 2.5, im: 0.0 });
    let e = x.item::<i64>().unwrap_err();
    assert_eq!(
        (e.status, e.message.as_str()),
        (Status::Dtype, "2.5 cannot be converted to i64 exactly")
    );
    let big = Tensor::from(i64::MAX);
    assert_eq!((big.item::<u64>()?, big.item::<i128>()?), (i64::MAX as u64, i64::MAX as i128));
    assert!(big.item::<f64>().is_err() && big.item::<i32>().is_err());
    assert!(Tensor::from(0.1).item::<f32>().is_err()); // a double that f32 rounds
    assert!(Tensor::from(-1i8).item::<usize>().is_err());
    assert!(Tensor::from(f32::NAN).item::<f64>()?.is_nan());
    assert!(Tensor::from(f32::INFINITY).item::<i64>().is_err());
    assert_eq!((Tensor::from(true).item::<u8>()?, Tensor::from(1i32).item::<bool>()?), (1, true));
    assert!(Tensor::from(2i32).item::<bool>().is_err());
    assert_eq!(floats(&[1.0, 2.0]).item::<f32>().unwrap_err().op, "item");
    Ok(())
}

#[test]
fn arrays_and_vectors() -> Result<()> {
    assert_eq!(Tensor::from([1i64, 2, 3]).shape(), [3]);
    assert_eq!(Tensor::from([[1u8, 2], [3, 4], [5, 6]]).shape(), [3, 2]);
    assert_eq!(Tensor::from([[[1.0f64; 4]; 3]; 2]).shape(), [2, 3, 4]);
    assert_eq!(Tensor::from([[[[true; 2]; 1]; 3]; 4]).shape(), [4, 3, 1, 2]);
    assert_eq!(Tensor::from([[0.5f32; 0]; 3]).shape(), [3, 0]);
    assert_eq!(Tensor::from([[1i64, 2], [3, 4]]).to_vec::<i64>()?, [1, 2, 3, 4]);
    assert_eq!(Tensor::from(vec![1.0f32, 2.0]).to_vec::<f32>()?, [1.0, 2.0]);
    assert_eq!(Tensor::from(&[1i32, 2][..]).dtype(), DType::I32);
    assert_eq!(Tensor::from(&[1i32, 2]).to_vec::<i32>()?, [1, 2]);
    assert_eq!(Tensor::from(&vec![1i16, 2]).dtype(), DType::I16);
    let halves = [1.5, -2.0].map(BF16::from_f32);
    assert_eq!(Tensor::from(halves).to_dtype(DType::F32)?.to_vec::<f32>()?, [1.5, -2.0]);
    Ok(())
}

#[test]
fn ranges_of_all_kinds() -> Result<()> {
    let x = tt::arange(0, 6)?;
    let at = |index: &[Index]| x.index_get(index).and_then(|y| y.to_vec::<i64>());
    let n = 2usize;
    assert_eq!(at(idx![n..])?, [2, 3, 4, 5]);
    assert_eq!(at(idx![..n])?, [0, 1]);
    assert_eq!(at(idx![1..=n])?, [1, 2]);
    assert_eq!(at(idx![..=n])?, [0, 1, 2]);
    assert_eq!(at(idx![-2..=-1])?, [4, 5]);
    assert_eq!(at(idx![..=-2i64])?, [0, 1, 2, 3, 4]);
    assert_eq!(at(idx![..=i64::MAX])?, [0, 1, 2, 3, 4, 5]);
    assert_eq!(at(idx![usize::MAX..])?, []);
    assert_eq!(x.index_get(idx![n])?.item::<i64>()?, 2);
    assert_eq!(x.index_get(idx![usize::MAX]).unwrap_err().status, Status::Index);
    assert_eq!(at(idx![Tensor::from([3i64, 1])])?, [3, 1]);
    Ok(())
}

#[test]
fn assignment_replaces_and_does_not_alias() -> Result<()> {
    let mut x = floats(&[1.0, 2.0]);
    let kept = x.clone();
    x += &kept;
    x *= 3.0;
    x -= floats(&[1.0, 1.0]);
    x /= 2;
    assert_eq!(x.to_vec::<f32>()?, [2.5, 5.5]);
    assert_eq!(kept.to_vec::<f32>()?, [1.0, 2.0]);
    let mut bits = Tensor::from([6i64]);
    bits |= 1;
    bits &= Tensor::from([5i64]);
    bits ^= 2;
    bits %= 4;
    assert_eq!(bits.item::<i64>()?, 3);
    Ok(())
}

/// Returns the file and line reported by a panic of f.
fn line_of_panic(f: impl FnOnce()) -> (String, u32) {
    let seen = Arc::new(Mutex::new(None));
    let (here, see) = (std::thread::current().id(), seen.clone());
    let outer = Arc::new(std::panic::take_hook());
    let hook = outer.clone();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == here {
            *see.lock().unwrap() = info.location().map(|l| (l.file().to_string(), l.line()));
        } else {
            hook(info)
        }
    }));
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    std::panic::set_hook(Box::new(move |info| outer(info)));
    let place = seen.lock().unwrap().take();
    place.expect("a place")
}

#[track_caller]
fn line() -> u32 {
    Location::caller().line()
}

#[test]
#[rustfmt::skip]
fn panics_of_operators_name_the_users_line() {
    let (a, b) = (floats(&[1.0, 2.0]), floats(&[1.0, 2.0, 3.0]));
    let mut c = a.clone();
    let mut at = 0;
    let mut check = |place: (String, u32), line: u32| {
        at += 1;
        assert!(place.0.ends_with("conversions.rs"), "{}: {:?}", at, place);
        assert_eq!(place.1, line, "{}", at);
    };
    check(line_of_panic(|| drop(&a + &b)), line());
    check(line_of_panic(|| drop(a.clone() * b.clone())), line());
    check(line_of_panic(|| c += &b), line());
    check(line_of_panic(|| drop(!&a)), line());
    check(line_of_panic(|| drop(&a & 1)), line());
    check(line_of_panic(|| StateDict::new().unwrap().extend([("\0", &a)])), line());
}

#[test]
fn state_dicts_are_maps() -> Result<()> {
    let mut state: StateDict = [("a", floats(&[1.0])), ("b", floats(&[2.0]))].into_iter().collect();
    state.extend([("a".to_string(), floats(&[3.0]))]);
    assert_eq!(
        format!("{:?}", state),
        r#"{"a": Tensor(float32 [1] on cpu), "b": Tensor(float32 [1] on cpu)}"#
    );
    assert_eq!((state.len(), state.is_empty(), state.iter().len()), (2, false, 2));
    assert_eq!(state.get("a").unwrap().item::<f32>()?, 3.0);
    assert!(state.get("c").is_none() && !state.contains_key("c") && state.contains_key("b"));
    assert_eq!((state.find("b")?, state.name(1).as_deref(), state.name(2)), (1, Some("b"), None));
    assert_eq!(state.at(usize::MAX).unwrap_err().status, Status::Index);
    let values = state.values().map(|t| t.item::<f32>()).collect::<Result<Vec<_>>>()?;
    assert_eq!(values, [3.0, 2.0]);
    let mut names = vec![];
    for (name, _) in &state {
        names.push(name);
    }
    let (list, mut all) = (state.clone().into_iter(), 0);
    for (name, _) in state {
        assert_eq!(name, names[all]);
        all += 1;
    }
    assert_eq!((list.len(), all), (2, 2));
    Ok(())
}

#[test]
fn everything_public_has_debug_and_names_have_display() -> Result<()> {
    fn debug<T: std::fmt::Debug>() {}
    macro_rules! all { ($($t:ty),* $(,)?) => { $(debug::<$t>();)* }; }
    all!(
        tt::Module,
        tt::SharedModule,
        tt::Optimizer,
        tt::Scheduler,
        tt::Generator,
        tt::Runtime,
        tt::Context,
        tt::Cancel,
        tt::Node,
        tt::Op,
        tt::Value,
        tt::SafeTensors,
        tt::ModeGuard,
        tt::Transfer<Tensor>,
        tt::Checkpoint<'_>,
        tt::RuntimeOpts,
        tt::opts::ArangeOpts,
        tt::nn::LinearOpts,
        tt::optim::SgdOpts,
        tt::FunctionCall,
        tt::MemoryStats,
        tt::ErrorInfo,
        tt::Compiled,
        tt::Group,
        tt::Work,
        tt::Ddp,
        tt::graph::Graph,
        tt::graph::Node<'_>,
        tt::graph::Plan,
    );
    assert_eq!(format!("{} {:>9}|", DType::BF16, DType::F32), "bfloat16   float32|");
    let meta = tt::Device::META;
    assert_eq!(format!("{} {}", tt::Device::CPU, meta), "cpu meta");
    assert_eq!(format!("{:>7}|", tt::Device::cuda(1)), " cuda:1|");
    assert_eq!(tt::Device::default(), tt::Device::CPU);
    assert_eq!(meta.to_string().parse::<tt::Device>()?, meta);
    assert_eq!(Status::InvalidArg.to_string(), "INVALID_ARG");
    let net = tt::nn::linear(2, 1)?;
    let sgd = tt::optim::sgd(net.parameters()?)?;
    assert_eq!(format!("{:?}", net), "Linear(in_features=2, out_features=1, bias=True)");
    assert_eq!(format!("{:?}", sgd), "Optimizer { lr: 0.001, groups: 1, params: 2 }");
    let schedule = tt::lr::exponential(&sgd, 0.5)?;
    assert_eq!(format!("{:?}", schedule), "Scheduler { last_epoch: 0, last_lr: [0.001] }");
    let generator = tt::Generator::new(7)?;
    assert_eq!(format!("{:?}", generator), "Generator { seed: 7, offset: 0 }");
    Ok(())
}
