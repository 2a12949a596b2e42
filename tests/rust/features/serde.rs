//! The feature `serde`: tensors, state dicts, dtypes and devices are serialized, here as JSON.
use serde_json::{from_str, from_value, json, to_string, to_value};
use tt::{nn, DType, Device, StateDict, Tensor};

#[test]
fn tensors_are_tuples() {
    let x = Tensor::from([[1i16, -1]]);
    let text = to_string(&x).unwrap();
    assert_eq!(text, r#"["int16",[1,2],[1,0,255,255]]"#);
    let y: Tensor = from_str(&text).unwrap();
    assert_eq!((y.shape(), y.to_vec::<i16>().unwrap()), (&[1, 2][..], vec![1, -1]));
    let column = Tensor::from([[1u8, 2], [3, 4]]).select(1, 1).unwrap();
    assert_eq!(to_value(column).unwrap(), json!(["uint8", [2], [2, 4]]));
    let truth: Tensor = from_value(json!(["bool", [2], [0, 7]])).unwrap();
    assert_eq!(truth.to_vec::<bool>().unwrap(), [false, true]);
}

#[test]
fn state_dicts_are_maps() -> tt::Result<()> {
    let state = nn::linear(3, 2)?.state_dict()?;
    let read: StateDict = from_str(&to_string(&state).unwrap()).unwrap();
    assert_eq!(read.names(), state.names());
    for (name, tensor) in &state {
        assert_eq!(read.tensor(&name)?.to_vec::<f32>()?, tensor.to_vec::<f32>()?);
    }
    nn::linear(3, 2)?.load_state_dict(&read)
}

#[test]
fn names_of_dtypes_and_devices() {
    assert_eq!(to_value((DType::BF16, Device::CPU)).unwrap(), json!(["bfloat16", "cpu"]));
    assert_eq!(from_value::<DType>(json!("complex64")).unwrap(), DType::C64);
    assert_eq!(from_value::<Device>(json!("cuda:2")).unwrap().index, 2);
    assert!(from_value::<DType>(json!("float31")).is_err());
}

#[test]
fn what_does_not_fit_is_an_error() {
    let wrong = [
        json!(["int16", [1, 2], [1, 0, 255]]),
        json!(["int16", [1, 2], [1, 0, 255, 255, 0]]),
        json!(["int16", [1, 2], [1, 0, 255, 255, 0, 0]]),
        json!(["int16", [-1], []]),
        json!(["int16", [i64::MAX, i64::MAX], [0]]),
        json!(["int15", [0], []]),
        json!(["int16", [0]]),
        json!({"dtype": "int16"}),
    ];
    for value in wrong {
        assert!(from_value::<Tensor>(value.clone()).is_err(), "{}", value);
    }
    assert!(from_value::<StateDict>(json!({"a\0b": ["int16", [0], []]})).is_err());
    let huge = tt::zeros(&[1]).unwrap().expand(&[1 << 50]).unwrap();
    assert!(to_value(huge).unwrap_err().to_string().contains("no memory"));
}
