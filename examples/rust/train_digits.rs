//! Trains a small convolutional network on handwritten digits: the Rust form of
//! examples/c/train_digits.c.
//!
//!     train_digits [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N]
//!                  [--checkpoint FILE] [--resume FILE] [--logits FILE]
//!     train_digits --evaluate CHECKPOINT [--logits FILE]
//!
//! --checkpoint saves everything after each epoch; --resume continues from such a file. --evaluate
//! tests the model of a checkpoint, also one of the C program. --logits writes the scores of the
//! test rows as raw float32, (297, 10), row-major.
mod digits;
use digits::{Digits, Outcome, CLASSES};
use std::io::{stdout, Write};
use std::time::Instant;
use tt::{
    lr, optim, Checkpoint, Generator, Module, Optimizer, Result, Scheduler, StateDict, Tensor,
};

const TRAIN: i64 = 1500;
const BATCH: i64 = 50;
const USAGE: &str = "\
usage: train_digits [--data FILE] [--epochs N] [--lr RATE] [--threads N] [--seed N]
                    [--checkpoint FILE] [--resume FILE] [--logits FILE]
       train_digits --evaluate CHECKPOINT [--logits FILE]";

struct Options {
    data: String,
    epochs: i64,
    lr: f64,
    threads: i32,
    seed: u64,
    checkpoint: Option<String>,
    resume: Option<String>,
    evaluate: Option<String>,
    logits: Option<String>,
}

fn parse() -> Outcome<Options> {
    let mut o = Options {
        data: "examples/data/digits.csv".into(),
        epochs: 30,
        lr: 0.01,
        threads: 1,
        seed: 0,
        checkpoint: None,
        resume: None,
        evaluate: None,
        logits: None,
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--help" {
            println!("{USAGE}");
            std::process::exit(0);
        }
        let mut value = || args.next().ok_or_else(|| format!("no value for {name}"));
        match name.as_str() {
            "--data" => o.data = value()?,
            "--epochs" => o.epochs = value()?.parse()?,
            "--lr" => o.lr = value()?.parse()?,
            "--threads" => o.threads = value()?.parse()?,
            "--seed" => o.seed = value()?.parse()?,
            "--checkpoint" => o.checkpoint = Some(value()?),
            "--resume" => o.resume = Some(value()?),
            "--evaluate" => o.evaluate = Some(value()?),
            "--logits" => o.logits = Some(value()?),
            _ => return Err(format!("unknown option {}", name).into()),
        }
    }
    Ok(o)
}

struct Trainer {
    net: Module,
    adam: Optimizer,
    schedule: Scheduler,
    random: Generator,
    losses: Vec<f64>, // one per epoch so far
}

impl Trainer {
    fn new(o: &Options) -> Result<Trainer> {
        let net = digits::net()?;
        let adam = optim::adam_with(&net.parameters()?, optim::AdamOpts::new().lr(o.lr))?;
        let schedule = lr::cosine_annealing(&adam, o.epochs)?;
        Ok(Trainer { net, adam, schedule, random: Generator::current()?, losses: vec![] })
    }
    fn parts<'a>(&'a self, extra: &'a mut StateDict) -> Result<Checkpoint<'a>> {
        Checkpoint::new()
            .module(&self.net)
            .optimizer(&self.adam)
            .scheduler(&self.schedule)
            .generator(&self.random)
            .extra(extra)
    }
    fn save(&self, path: &str) -> Result<()> {
        let mut extra = StateDict::new()?;
        extra.set("losses", &Tensor::from_slice(&self.losses, &[self.losses.len() as i64])?)?;
        self.parts(&mut extra)?.save(path)
    }
    fn resume(&mut self, path: &str) -> Result<()> {
        let mut extra = StateDict::new()?;
        self.parts(&mut extra)?.load(path)?;
        self.losses = extra.tensor("losses")?.to_vec()?;
        Ok(())
    }
    fn batch(&self, x: &Tensor, y: &Tensor, rows: &Tensor) -> Result<f64> {
        let scores = self.net.call(&x.index_select(0, rows)?)?;
        let loss = scores.cross_entropy(&y.index_select(0, rows)?)?;
        self.adam.zero_grad(true)?;
        loss.backward()?;
        self.adam.step()?;
        Ok(loss.item::<f32>()? as f64)
    }
    fn train(&mut self, o: &Options, x: &Tensor, y: &Tensor) -> Result<()> {
        let (start, first) = (Instant::now(), self.losses.len());
        for epoch in first + 1..=o.epochs as usize {
            let order = tt::randperm(TRAIN)?;
            let batches = order.split(BATCH)?;
            let sum: f64 =
                batches.iter().map(|rows| self.batch(x, y, rows)).sum::<Result<f64>>()?;
            self.schedule.step()?;
            self.losses.push(sum / batches.len() as f64);
            if let Some(path) = &o.checkpoint {
                self.save(path)?;
            }
            progress(epoch, o.epochs as usize, epoch - first, sum / batches.len() as f64, start);
        }
        println!();
        Ok(())
    }
    /// Returns the scores in evaluation mode.
    fn scores(&self, x: &Tensor) -> Result<Tensor> {
        self.net.train(false)?;
        tt::no_grad(|| self.net.call(x))
    }
}

fn progress(epoch: usize, epochs: usize, done: usize, loss: f64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let bar: String = (0..30).map(|i| if i < 30 * epoch / epochs { '#' } else { '-' }).collect();
    let rate = done as f64 * TRAIN as f64 / seconds;
    let left = seconds / done as f64 * (epochs - epoch) as f64;
    print!(
        "\repoch {:3}/{} [{}] loss {:.4}  {:.0} samples/s  ETA {:.1} s ",
        epoch, epochs, bar, loss, rate, left
    );
    let _ = stdout().flush();
}

/// Prints the confusion matrix: a row per true class, a column per predicted class.
fn print_confusion(truth: &[i64], guess: &[i64]) {
    let mut counts = [[0; CLASSES]; CLASSES];
    truth.iter().zip(guess).for_each(|(t, g)| counts[*t as usize][*g as usize] += 1);
    println!(
        "confusion matrix (rows: truth)\n    {}",
        (0..CLASSES).map(|c| format!("{:4}", c)).collect::<String>()
    );
    for (class, row) in counts.iter().enumerate() {
        println!(
            "{:4}{}",
            class,
            row.iter()
                .map(|n| if *n == 0 { "   .".into() } else { format!("{:4}", n) })
                .collect::<String>()
        );
    }
}

fn run(o: &Options) -> Outcome<()> {
    let Digits { images: x, labels: y } = digits::read(&o.data)?;
    if x.size(0) <= TRAIN {
        return Err(format!("{}: {} rows, more than {TRAIN} are needed", o.data, x.size(0)).into());
    }
    tt::set_num_threads(o.threads)?;
    tt::manual_seed(1234)?; // the split is always the same
    let order = tt::randperm(x.size(0))?;
    let (train, test) = (order.narrow(0, 0, TRAIN)?, order.narrow(0, TRAIN, x.size(0) - TRAIN)?);
    tt::manual_seed(o.seed)?;
    let mut trainer = Trainer::new(o)?;
    if let Some(path) = &o.evaluate {
        Checkpoint::new().module(&trainer.net).load(path)?;
    } else {
        if let Some(path) = &o.resume {
            trainer.resume(path)?;
        }
        trainer.train(o, &x.index_select(0, &train)?, &y.index_select(0, &train)?)?;
    }
    let scores = trainer.scores(&x.index_select(0, &test)?)?;
    if let Some(path) = &o.logits {
        let bytes: Vec<u8> = scores.to_vec::<f32>()?.iter().flat_map(|v| v.to_ne_bytes()).collect();
        std::fs::write(path, bytes).map_err(|e| format!("{}: {}", path, e))?;
    }
    let guess = scores.argmax_with(tt::opts::ArgmaxOpts::new().dim(1))?.to_vec::<i64>()?;
    let truth = y.index_select(0, &test)?.to_vec::<i64>()?;
    print_confusion(&truth, &guess);
    let right = truth.iter().zip(&guess).filter(|(t, g)| t == g).count();
    println!("test accuracy {:.1} %", 100.0 * right as f64 / truth.len() as f64);
    Ok(())
}

fn main() {
    if let Err(e) = parse().and_then(|o| run(&o)) {
        eprintln!("train_digits: {}", e);
        std::process::exit(1);
    }
}
