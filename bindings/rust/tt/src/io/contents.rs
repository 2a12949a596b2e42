//! What a file holds beside its tensors: the numbers, texts and containers of PyTorch's and GGUF's
//! files, parsed from the JSON of [`StateDict::structure`].
use crate::StateDict;
use std::iter::Peekable;
use std::str::Chars;

/// A value in a file that [`torch_load`](crate::torch_load) or [`gguf_load`](crate::gguf_load) has
/// read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Python's None.
    None,
    /// True or False.
    Bool(bool),
    /// An int of 64 bits.
    Int(i64),
    /// Another int, in decimal digits.
    BigInt(String),
    /// A float.
    Float(f64),
    /// A str.
    Text(String),
    /// The name of a tensor in the [`StateDict`].
    Tensor(String),
    /// The name of an `nn.Parameter` in the [`StateDict`].
    Parameter(String),
    /// A list.
    List(Vec<Content>),
    /// A tuple, or a `torch.Size`.
    Tuple(Vec<Content>),
    /// A dict, an OrderedDict or a Counter, in its order.
    Dict(Vec<(Content, Content)>),
    /// A dtype: "float32".
    Dtype(String),
    /// A device: "cuda:0".
    Device(String),
}

impl Content {
    /// Returns the value of a text key of a dict.
    pub fn get(&self, key: &str) -> Option<&Content> {
        self.entries().iter().find(|(k, _)| k.as_str() == Some(key)).map(|(_, value)| value)
    }
    /// Returns the i-th item of a list or a tuple.
    pub fn at(&self, i: usize) -> Option<&Content> {
        self.items().get(i)
    }
    /// Returns the items of a list or a tuple; none of other values.
    pub fn items(&self) -> &[Content] {
        match self {
            Content::List(items) | Content::Tuple(items) => items,
            _ => &[],
        }
    }
    /// Returns the keys and values of a dict; none of other values.
    pub fn entries(&self) -> &[(Content, Content)] {
        match self {
            Content::Dict(entries) => entries,
            _ => &[],
        }
    }
    /// Returns an int of 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Content::Int(i) => Some(*i),
            _ => None,
        }
    }
    /// Returns a float, or an int as one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Content::Float(x) => Some(*x),
            Content::Int(i) => Some(*i as f64),
            Content::BigInt(digits) => digits.parse().ok(),
            _ => None,
        }
    }
    /// Returns a bool.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Content::Bool(b) => Some(*b),
            _ => None,
        }
    }
    /// Returns a text, or the name of a tensor, a dtype or a device.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Content::Text(s)
            | Content::Tensor(s)
            | Content::Parameter(s)
            | Content::Dtype(s)
            | Content::Device(s) => Some(s),
            _ => None,
        }
    }
}

impl StateDict {
    /// Returns the contents of the file that [`torch_load`](crate::torch_load) or
    /// [`gguf_load`](crate::gguf_load) has read; None for other dicts.
    ///
    /// ```
    /// use tt::Content;
    /// let path = std::env::temp_dir().join("tt_doc_contents.pt");
    /// let path = path.to_str().unwrap();
    /// let structure = r#"{"dict": [["epoch", 3], ["lr", {"float": "0x1.8p-1"}]]}"#;
    /// tt::torch_save(path, &tt::StateDict::new()?, Some(structure))?;
    /// let contents = tt::torch_load(path)?.contents().unwrap();
    /// assert_eq!(contents.get("epoch").and_then(Content::as_i64), Some(3));
    /// assert_eq!(contents.get("lr").and_then(Content::as_f64), Some(0.75));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn contents(&self) -> Option<Content> {
        let text = self.structure()?;
        Parser(text.chars().peekable()).value()
    }
}

/// Reads JSON that C has written. Each method returns None where the text is another one.
struct Parser<'a>(Peekable<Chars<'a>>);

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        while self.0.peek()?.is_ascii_whitespace() {
            self.0.next();
        }
        self.0.peek().copied()
    }
    /// Skips c if it is next. Returns whether it was.
    fn skip(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.0.next();
        }
        found
    }
    fn expect(&mut self, c: char) -> Option<()> {
        self.skip(c).then_some(())
    }

    fn value(&mut self) -> Option<Content> {
        match self.peek()? {
            '"' => self.text().map(Content::Text),
            '[' => self.array().map(Content::List),
            '{' => self.object(false),
            _ => self.word(),
        }
    }
    fn word(&mut self) -> Option<Content> {
        let mut word = String::new();
        while let Some(&c) = self.0.peek() {
            if !(c.is_ascii_alphanumeric() || "+-.".contains(c)) {
                break;
            }
            word.push(c);
            self.0.next();
        }
        match word.as_str() {
            "null" => Some(Content::None),
            "true" => Some(Content::Bool(true)),
            "false" => Some(Content::Bool(false)),
            _ => number(word),
        }
    }
    fn array(&mut self) -> Option<Vec<Content>> {
        let mut items = vec![];
        self.expect('[')?;
        while !self.skip(']') {
            if !items.is_empty() {
                self.expect(',')?;
            }
            items.push(self.value()?);
        }
        Some(items)
    }
    /// A value with its kind, as {"tuple": [1, 2]}, or a dict with texts as keys. With `names` it
    /// is a dict.
    fn object(&mut self, names: bool) -> Option<Content> {
        let mut entries = vec![];
        self.expect('{')?;
        while !self.skip('}') {
            if !entries.is_empty() {
                self.expect(',')?;
            }
            let key = self.text()?;
            self.expect(':')?;
            // Of a GGUF file, keys of these are the file's own.
            let holds_names = matches!(key.as_str(), "metadata" | "types");
            let is_object = self.peek() == Some('{');
            let value = if holds_names && is_object { self.object(true) } else { self.value() };
            entries.push((key, value?));
        }
        if entries.len() == 1 && !names {
            let (kind, value) = entries.pop()?;
            return Some(of_kind(kind, value));
        }
        Some(Content::Dict(entries.into_iter().map(|(k, v)| (Content::Text(k), v)).collect()))
    }
    fn text(&mut self) -> Option<String> {
        let mut text = String::new();
        self.expect('"')?;
        loop {
            match self.0.next()? {
                '"' => return Some(text),
                '\\' => text.push(self.escaped()?),
                c => text.push(c),
            }
        }
    }
    fn escaped(&mut self) -> Option<char> {
        Some(match self.0.next()? {
            'u' => {
                let mut code = 0;
                for _ in 0..4 {
                    code = code * 16 + self.0.next()?.to_digit(16)?;
                }
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            c => c,
        })
    }
}

fn number(word: String) -> Option<Content> {
    if let Ok(i) = word.parse() {
        return Some(Content::Int(i));
    }
    let digits = word.strip_prefix('-').unwrap_or(&word);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Content::BigInt(word));
    }
    word.parse().ok().map(Content::Float)
}

/// Returns the value of an object with a single key.
fn of_kind(kind: String, value: Content) -> Content {
    match (kind.as_str(), value) {
        ("tensor", Content::Text(name)) => Content::Tensor(name),
        ("parameter", Content::Text(name)) => Content::Parameter(name),
        ("dtype", Content::Text(name)) => Content::Dtype(name),
        ("device", Content::Text(name)) => Content::Device(name),
        ("float", Content::Text(digits)) => match float(&digits) {
            Some(x) => Content::Float(x),
            None => Content::Text(digits),
        },
        ("list", Content::List(items)) => Content::List(items),
        ("tuple" | "size", Content::List(items)) => Content::Tuple(items),
        ("dict" | "ordered" | "counter", Content::List(pairs)) => {
            Content::Dict(pairs.into_iter().filter_map(pair).collect())
        }
        (_, value) => Content::Dict(vec![(Content::Text(kind), value)]),
    }
}

fn pair(pair: Content) -> Option<(Content, Content)> {
    match pair {
        Content::List(items) => match <[Content; 2]>::try_from(items) {
            Ok([key, value]) => Some((key, value)),
            Err(_) => None,
        },
        _ => None,
    }
}

/// Parses "inf", "nan" and numbers of C's format %a: "-0x1.8p+1".
fn float(digits: &str) -> Option<f64> {
    let (sign, rest) = match digits.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, digits),
    };
    let hex = match rest.strip_prefix("0x") {
        Some(hex) => hex,
        None => return rest.parse::<f64>().ok().map(|x| sign * x),
    };
    let (mantissa, exponent) = hex.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = u64::from_str_radix(&format!("{}{}", whole, fraction), 16).ok()?;
    let exponent = exponent.parse::<i32>().ok()? - 4 * fraction.len() as i32;
    // Two steps, since the power of two alone may be out of range.
    let half = exponent / 2;
    Some(sign * all as f64 * 2f64.powi(half) * 2f64.powi(exponent - half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_gguf_file_are_no_kinds() {
        let text = r#"{"metadata":{"list":[1]},"types":{"tensor":"f32"}}"#;
        let contents = Parser(text.chars().peekable()).value().unwrap();
        let kind = contents.get("types").and_then(|types| types.get("tensor"));
        assert_eq!(kind, Some(&Content::Text("f32".to_string())));
        let list = contents.get("metadata").and_then(|m| m.get("list"));
        assert_eq!(list.map(|l| l.items().len()), Some(1));
    }
    #[test]
    fn words_that_are_no_numbers_are_refused() {
        assert_eq!((number(String::new()), number("-".to_string())), (None, None));
    }
}
