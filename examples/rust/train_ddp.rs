//! Trains a small network on handwritten digits in several processes: the Rust form of
//! examples/c/train_ddp.c.
//!
//!     python3 -m tt.distributed.run --no-python --nproc-per-node 2 target/debug/examples/train_ddp
//!     mpirun -n 2 target/debug/examples/train_ddp
//!
//! Its argument is the data file, by default examples/data/digits.csv.
#[allow(dead_code)] // its network is for a single process
mod digits;
use digits::{Digits, Outcome, CLASSES, PIXELS};
use tt::{nn, optim, Ddp, DdpOptions, Group, GroupOptions, Module, ReduceOp, Tensor};

const TRAIN: i64 = 1500;
const BATCH: i64 = 60;
const EPOCHS: i64 = 10;

fn net() -> tt::Result<Module> {
    tt::sequential([nn::linear(PIXELS as i64, 64)?, nn::relu()?, nn::linear(64, CLASSES as i64)?])
}

fn accuracy(net: &Module, x: &Tensor, y: &Tensor) -> tt::Result<f64> {
    let scores = tt::no_grad(|| net.call(x))?;
    let guess = scores.argmax_with(tt::opts::ArgmaxOpts::new().dim(1))?.to_vec::<i64>()?;
    let right = y.to_vec::<i64>()?.iter().zip(&guess).filter(|(t, g)| t == g).count();
    Ok(right as f64 / guess.len() as f64)
}

fn run() -> Outcome<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "examples/data/digits.csv".into());
    let Digits { images, labels } = digits::read(&path)?;
    tt::set_num_threads(1)?;
    let group = Group::from_env(&GroupOptions::default())?;
    let (rank, size) = (group.rank() as i64, group.size() as i64);
    let x = images.reshape(&[-1, PIXELS as i64])?;
    let net = net()?;
    let adam = optim::adam(&net.parameters()?)?;
    // All ranks get rank 0's parameters, and backward averages their gradients.
    let _ddp = Ddp::new(&net, &group, &DdpOptions::default())?;
    let mine = BATCH / size;
    for epoch in 1..=EPOCHS {
        let mut last = 0.0;
        for begin in (0..TRAIN).step_by(BATCH as usize) {
            let first = begin + rank * mine;
            let scores = net.call(&x.narrow(0, first, mine)?)?;
            let loss = scores.cross_entropy(&labels.narrow(0, first, mine)?)?;
            adam.zero_grad(true)?;
            loss.backward()?;
            adam.step()?;
            last = group.all_reduce(&loss, ReduceOp::Mean)?.item::<f32>()?;
        }
        if rank == 0 {
            println!("epoch {epoch}: loss {last:.4}");
        }
    }
    if rank == 0 {
        let tests = x.size(0) - TRAIN;
        let right = accuracy(&net, &x.narrow(0, TRAIN, tests)?, &labels.narrow(0, TRAIN, tests)?)?;
        println!("{size} processes: test accuracy {:.1} %", 100.0 * right);
    }
    Ok(())
}

fn main() {
    if let Err(e) = run() {
        eprintln!("train_ddp: {e}");
        std::process::exit(1);
    }
}
