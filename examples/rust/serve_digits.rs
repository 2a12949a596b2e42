//! Serves a trained network over HTTP: worker threads call one shared model at the same time,
//! without locks and without copies of its weights. It needs only the standard library.
//!
//!     train_digits --checkpoint digits.safetensors
//!     serve_digits --model digits.safetensors [--address HOST:PORT] [--workers N]
//!     curl --data '0,0,5,13, … 64 pixels of 0 to 16, one image a line' HOST:PORT/classify
//!     serve_digits --ask HOST:PORT [--data FILE]
//!     serve_digits --model digits.safetensors --self-test [--data FILE]
//!
//! --ask classifies the images of a data file with a running server. --self-test does so with a
//! server in this process and several concurrent clients, and compares the answers with the
//! model's.
mod digits;
use digits::{Digits, Outcome, PIXELS};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tt::{Checkpoint, SharedModule, Tensor};

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_BODY: usize = 1 << 20;
const BATCH: usize = 50;
const USAGE: &str = "\
usage: serve_digits --model FILE [--address HOST:PORT] [--workers N]
       serve_digits --model FILE --self-test [--workers N] [--data FILE]
       serve_digits --ask HOST:PORT [--data FILE]";

struct Options {
    model: Option<String>,
    ask: Option<String>,
    self_test: bool,
    address: String,
    workers: usize,
    data: String,
}

fn parse() -> Outcome<Options> {
    let mut options = Options {
        model: None,
        ask: None,
        self_test: false,
        address: "127.0.0.1:8080".into(),
        workers: 2,
        data: "examples/data/digits.csv".into(),
    };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        if name == "--help" {
            println!("{USAGE}");
            std::process::exit(0);
        }
        if name == "--self-test" {
            options.self_test = true;
            continue;
        }
        let mut value = || args.next().ok_or_else(|| format!("no value for {name}"));
        match name.as_str() {
            "--model" => options.model = Some(value()?),
            "--ask" => options.ask = Some(value()?),
            "--address" => options.address = value()?,
            "--workers" => options.workers = value()?.parse::<usize>()?.max(1),
            "--data" => options.data = value()?,
            _ => return Err(format!("unknown option {name}").into()),
        }
    }
    Ok(options)
}

/// Loads a checkpoint of train_digits and freezes the network, so that any thread can call it.
fn load(path: &str) -> tt::Result<SharedModule> {
    let net = digits::net()?;
    Checkpoint::new().module(&net).load(path)?;
    net.freeze()
}

/// Returns the digit of each image.
fn classify(model: &SharedModule, images: &Tensor) -> tt::Result<Vec<i64>> {
    let (_, digits) = model.forward(images)?.max_dim(1)?;
    digits.to_vec()
}

// ---- the server ----

/// Answers requests on this thread until `stop` is set.
fn work(listener: &TcpListener, model: &SharedModule, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let done = listener.accept().and_then(|(stream, _)| answer(stream, model));
        if let Err(e) = done {
            eprintln!("a request failed: {e}");
        }
    }
}

fn answer(mut stream: TcpStream, model: &SharedModule) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = match read_request(&mut stream)? {
        Some(request) => request,
        None => return Ok(()), // closed without a request
    };
    let (status, text) = match respond(&request, model) {
        Ok(digits) => ("200 OK", digits),
        Err(e) => ("400 Bad Request", format!("{e}\n")),
    };
    let length = text.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(text.as_bytes())
}

struct Request {
    line: String,
    body: String,
}

fn read_request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let invalid = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut reader = BufReader::new(stream.take(2 * LONGEST_BODY as u64));
    let (mut line, mut length) = (String::new(), 0);
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 {
            return Err(invalid("the head of a request ends early"));
        }
        if header.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':') {
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().map_err(|_| invalid("Content-Length"))?;
            }
        }
    }
    if length > LONGEST_BODY {
        return Err(invalid("the body is too long"));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).map_err(|_| invalid("the body is no text"))?;
    Ok(Some(Request { line, body }))
}

fn respond(request: &Request, model: &SharedModule) -> Outcome<String> {
    if !request.line.starts_with("POST /classify ") {
        return Err("POST images to /classify".into());
    }
    let mut pixels = vec![];
    for line in request.body.lines() {
        let row: Vec<f32> = line.split(',').map(|p| p.trim().parse()).collect::<Result<_, _>>()?;
        if row.len() != PIXELS {
            return Err(format!("an image has {PIXELS} pixels, not {}", row.len()).into());
        }
        pixels.extend(row.iter().map(|p| p / 16.0));
    }
    let n = (pixels.len() / PIXELS) as i64;
    let digits = classify(model, &Tensor::from_vec(pixels, &[n, 1, 8, 8])?)?;
    Ok(digits.iter().map(|digit| format!("{digit}\n")).collect())
}

// ---- the client ----

/// Asks a server for the digits of images (N, 1, 8, 8).
fn ask(address: impl ToSocketAddrs, images: &Tensor) -> Outcome<Vec<i64>> {
    let pixels = images.to_vec::<f32>()?;
    let text = |row: &[f32]| {
        let numbers: Vec<String> = row.iter().map(|p| (p * 16.0).to_string()).collect();
        numbers.join(",") + "\n"
    };
    let body: String = pixels.chunks(PIXELS).map(text).collect();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "POST /classify HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    let (head, digits) = response.split_once("\r\n\r\n").ok_or("no response")?;
    if !head.starts_with("HTTP/1.1 200") {
        return Err(format!("{}: {}", head.lines().next().unwrap_or(""), digits.trim()).into());
    }
    Ok(digits.lines().map(str::parse).collect::<Result<_, _>>()?)
}

/// Asks a server for the digits of all images, in batches.
fn ask_all(address: impl ToSocketAddrs + Copy, images: &Tensor) -> Outcome<Vec<i64>> {
    let mut digits = vec![];
    for batch in images.split(BATCH as i64)? {
        digits.extend(ask(address, &batch)?);
    }
    Ok(digits)
}

fn print_accuracy(digits: &[i64], labels: &Tensor) -> Outcome<()> {
    let labels = labels.to_vec::<i64>()?;
    let right = digits.iter().zip(&labels).filter(|(a, b)| a == b).count();
    println!("accuracy {:.1} %", 100.0 * right as f64 / labels.len() as f64);
    Ok(())
}

// ---- modes ----

fn serve(model: &SharedModule, options: &Options) -> Outcome<()> {
    let listener = TcpListener::bind(&options.address)?;
    println!("{} workers at http://{}/classify", options.workers, listener.local_addr()?);
    let never = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..options.workers {
            scope.spawn(|| work(&listener, model, &never));
        }
    });
    Ok(())
}

/// Tests a server in this process with as many clients as workers.
fn self_test(model: &SharedModule, options: &Options) -> Outcome<()> {
    let Digits { images, labels } = digits::read(&options.data)?;
    let expected = classify(model, &images)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let stop = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        for _ in 0..options.workers {
            scope.spawn(|| work(&listener, model, &stop));
        }
        let clients: Vec<_> =
            (0..options.workers).map(|_| scope.spawn(|| ask_all(address, &images))).collect();
        let answers: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let mistake = ask(address, &tt::zeros(&[1, 1, 7, 7])?);
        stop.store(true, Ordering::Relaxed);
        for _ in 0..options.workers {
            drop(TcpStream::connect(address)); // wakes a worker, which then stops
        }
        if mistake.is_ok() {
            return Err("images of 7 x 7 pixels were classified".into());
        }
        answers.into_iter().collect::<Outcome<Vec<_>>>()
    })?;
    if answers.iter().any(|digits| *digits != expected) {
        return Err("a client got other digits than the model gives".into());
    }
    println!("{} clients got what the model answers", answers.len());
    print_accuracy(&expected, &labels)
}

fn run() -> Outcome<()> {
    let options = parse()?;
    if let Some(address) = &options.ask {
        let Digits { images, labels } = digits::read(&options.data)?;
        return print_accuracy(&ask_all(address.as_str(), &images)?, &labels);
    }
    let path =
        options.model.as_ref().ok_or("--model FILE is missing: a checkpoint of train_digits")?;
    let model = load(path)?;
    if options.self_test {
        self_test(&model, &options)
    } else {
        serve(&model, &options)
    }
}

fn main() {
    if let Err(e) = run() {
        eprintln!("serve_digits: {e}");
        std::process::exit(1);
    }
}
