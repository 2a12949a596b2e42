//! Serialization of tensors and state dicts with `serde`; dtypes and devices are their names.
//!
//! A tensor is the tuple (name of the dtype, shape, bytes of the elements), row-major and
//! little-endian, as in safetensors. A state dict is a map from names to tensors, in order.
use crate::error::{Error, Result};
use crate::handle::*;
use crate::tensor::check_length;
use crate::{DType, Device, StateDict, Status, Tensor};
use ::serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use ::serde::ser::Error as _;
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::os::raw::c_void;
use tt_sys as sys;

type Outcome<T, E> = std::result::Result<T, E>;

macro_rules! names {
    ($($t:ty)*) => { $(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, to: S) -> Outcome<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Outcome<$t, D::Error> {
                String::deserialize(from)?.parse().map_err(D::Error::custom)
            }
        }
    )* };
}
names!(DType Device);

fn tensor_of(dtype: DType, shape: &[i64], bytes: &[u8]) -> Result<Tensor> {
    let size = dtype.size();
    if bytes.len() % size != 0 {
        return Err(Error::new(Status::Shape, format!("{} bytes of {}", bytes.len(), dtype)));
    }
    check_length(bytes.len() / size, shape)?;
    let (p, n) = (bytes.as_ptr() as *const c_void, shape.len() as i64);
    // SAFETY: the number of bytes matches the shape.
    unsafe { call1(|c, out| sys::tt_tensor_from_data(c, p, dtype as i32, shape.as_ptr(), n, out)) }
}

struct Bytes(Vec<u8>);
impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, to: S) -> Outcome<S::Ok, S::Error> {
        to.serialize_bytes(&self.0)
    }
}
impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Outcome<Bytes, D::Error> {
        from.deserialize_byte_buf(BytesVisitor)
    }
}
struct BytesVisitor;
impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }
    fn visit_bytes<E>(self, bytes: &[u8]) -> Outcome<Bytes, E> {
        Ok(Bytes(bytes.to_vec()))
    }
    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Outcome<Bytes, E> {
        Ok(Bytes(bytes))
    }
    /// Formats without byte strings, such as JSON, use numbers.
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Outcome<Bytes, A::Error> {
        let mut bytes = vec![];
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(Bytes(bytes))
    }
}

impl Serialize for Tensor {
    fn serialize<S: Serializer>(&self, to: S) -> Outcome<S::Ok, S::Error> {
        let bytes = self.to_bytes().map_err(S::Error::custom)?;
        (self.dtype(), self.shape(), Bytes(bytes)).serialize(to)
    }
}
impl<'de> Deserialize<'de> for Tensor {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Outcome<Tensor, D::Error> {
        let (dtype, shape, Bytes(bytes)) = <(DType, Vec<i64>, Bytes)>::deserialize(from)?;
        tensor_of(dtype, &shape, &bytes).map_err(D::Error::custom)
    }
}

impl Serialize for StateDict {
    fn serialize<S: Serializer>(&self, to: S) -> Outcome<S::Ok, S::Error> {
        to.collect_map(self)
    }
}
impl<'de> Deserialize<'de> for StateDict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Outcome<StateDict, D::Error> {
        from.deserialize_map(DictVisitor)
    }
}
struct DictVisitor;
impl<'de> Visitor<'de> for DictVisitor {
    type Value = StateDict;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from names to tensors")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Outcome<StateDict, A::Error> {
        let mut dict = StateDict::new().map_err(A::Error::custom)?;
        while let Some((name, tensor)) = map.next_entry::<String, Tensor>()? {
            dict.insert(&name, &tensor).map_err(A::Error::custom)?;
        }
        Ok(dict)
    }
}
