//! Transformers, parametrizations, pruning and other tools, beside results of PyTorch.
use crate::values;
use tt::opts::GradOpts;
use tt::utils::{parametrize, prune};
use tt::{nn, DType, Module, Result, SafeTensors, StateDict, Status, Tensor};

/// A recorded call of a layer of PyTorch, with the state of the layer.
struct Case {
    file: SafeTensors,
    text: String,
}
impl Case {
    fn open(layer: &str, id: &str) -> Result<Case> {
        let path = format!(
            "{}/../../../tests/python/conformance-training/modules/nn.{}.safetensors",
            env!("CARGO_MANIFEST_DIR"),
            layer
        );
        let file = SafeTensors::open(path)?;
        let cases = file.metadata().find(|(key, _)| key == "cases").unwrap().1;
        let start = cases.find(&format!("{{\"id\":\"{}\"", id)).unwrap();
        let end = cases[start + 1..].find("{\"id\":").map_or(cases.len(), |n| start + 1 + n);
        Ok(Case { text: cases[start..end].to_string(), file })
    }
    /// The tensor that follows a key.
    fn tensor(&self, key: &str) -> Result<Tensor> {
        let key = format!("\"{}\":", key);
        let rest = &self.text[self.text.find(&key).expect(&key) + key.len()..];
        let rest = &rest[rest.find("{\"t\":\"").unwrap() + 6..];
        self.file.tensor(&rest[..rest.find('"').unwrap()])
    }
    fn load_into(&self, m: &Module) -> Result<()> {
        let names = m.state_dict()?.names();
        let state: StateDict = names
            .iter()
            .map(|name| Ok((name.clone(), self.tensor(name)?)))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .collect();
        m.load_state_dict(&state)
    }
    fn second_input(&self) -> Result<Tensor> {
        let rest = &self.text[self.text.find("\"inputs\":").unwrap()..];
        let ids: Vec<&str> = rest.split("{\"t\":\"").skip(1).collect();
        self.file.tensor(&ids[1][..ids[1].find('"').unwrap()])
    }
    fn agrees(&self, y: &Tensor) -> Result<()> {
        assert!(y.allclose(&self.tensor("out")?, 1e-5, 1e-5, false)?);
        Ok(())
    }
}

#[test]
fn transformers_load_states_of_pytorch() -> Result<()> {
    let case = Case::open("TransformerEncoder", "nn.TransformerEncoder-101-f32-eval")?;
    let opts = nn::TransformerEncoderLayerOpts::new().dim_feedforward(12).dropout(0.0);
    let opts = opts.batch_first(true).activation(tt::Activation::Gelu);
    let layer = nn::transformer_encoder_layer_with(8, 2, opts)?;
    let encoder = nn::transformer_encoder(&layer, 2)?;
    case.load_into(&encoder)?;
    encoder.train(false)?;
    let (x, padding) = (case.tensor("inputs")?, case.tensor("src_key_padding_mask")?);
    case.agrees(&encoder.forward_opt(&[Some(&x), None, Some(&padding)])?[0])?;

    let case = Case::open("TransformerDecoder", "nn.TransformerDecoder-2-f32-eval")?;
    let opts = nn::TransformerDecoderLayerOpts::new().dim_feedforward(12).dropout(0.0);
    let opts = opts.batch_first(true).norm_first(true).bias(false);
    let layer = nn::transformer_decoder_layer_with(8, 2, opts)?;
    let norm = nn::layer_norm(&[8])?;
    let opts = nn::TransformerDecoderOpts::new().norm(&norm);
    let decoder = nn::transformer_decoder_with(&layer, 2, opts)?;
    case.load_into(&decoder)?;
    let (x, memory) = (case.tensor("inputs")?, case.second_input()?);
    let padding = case.tensor("memory_key_padding_mask")?;
    let inputs = [Some(&x), Some(&memory), None, None, None, Some(&padding)];
    case.agrees(&decoder.forward_opt(&inputs)?[0])?;

    let case = Case::open("Transformer", "nn.Transformer-100-f32-train")?;
    let opts = nn::TransformerOpts::new().num_encoder_layers(1).num_decoder_layers(1);
    let all = nn::transformer_with(8, 2, opts.dim_feedforward(12).dropout(0.0))?;
    case.load_into(&all)?;
    let (src, tgt) = (case.tensor("inputs")?, case.second_input()?);
    let mask = tt::generate_square_subsequent_mask(4)?;
    assert!(mask.equal(&case.tensor("tgt_mask")?)?);
    let y = all.forward_opt(&[Some(&src), Some(&tgt), None, Some(&mask)])?;
    case.agrees(&y[0])?;
    let copy = all.copy()?.freeze()?; // copies compute the same, and may be frozen
    let y = copy.module().forward_opt(&[Some(&src), Some(&tgt), None, Some(&mask)])?;
    case.agrees(&y[0])
}

#[test]
fn stacks_take_modules_of_the_application() -> Result<()> {
    let twice = Module::from_fn("Twice", |x| x.mul_scalar(2))?;
    let stack = nn::transformer_encoder(&twice, 3)?;
    assert_eq!(values(&stack.forward(&tt::ones(&[2])?)?)?, [8.0, 8.0]);
    assert_eq!(stack.child_name(0).as_deref(), Some("layers"));
    let e = nn::transformer_encoder(&twice, -1).unwrap_err();
    assert_eq!((e.status, e.argument.as_deref()), (Status::InvalidArg, Some("num_layers")));
    Ok(())
}

/// A linear layer of 4 inputs and 3 outputs, whose weights have 12 magnitudes.
fn layer() -> Result<Module> {
    let m = nn::linear(4, 3)?;
    let weight: Vec<f32> = (0..12).map(|i| (i * 7 % 12) as f32 - 5.2).collect();
    let weight = Tensor::from_vec(weight, &[3, 4])?.requires_grad_(true)?;
    m.register_parameter("weight", Some(&weight))?;
    let bias = Tensor::from([0.5f32, -1.0, 0.25]).requires_grad_(true)?;
    m.register_parameter("bias", Some(&bias))?;
    Ok(m)
}
fn input() -> Tensor {
    Tensor::from([[1.0f32, 2.0, 3.0, 4.0]])
}
fn tensor(m: &Module, name: &str) -> Result<Tensor> {
    Ok(m.get_tensor(name)?.unwrap())
}
fn close(t: &Tensor, want: &[f64]) -> Result<()> {
    let got = t.to_dtype(DType::F64)?.reshape(&[-1])?.to_vec::<f64>()?;
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 + 1e-4 * b.abs();
    assert!(got.len() == want.len() && got.iter().zip(want).all(near), "{:?}", got);
    Ok(())
}

#[test]
fn weight_norm_as_in_pytorch() -> Result<()> {
    let m = layer()?;
    parametrize::weight_norm(&m, "weight", Some(0))?;
    let names = ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"];
    assert_eq!(m.state_dict()?.names(), names);
    let y = m.forward(&input())?;
    close(&y, &[4.5, -5.0, 12.25])?;
    y.mul(&y)?.sum()?.backward()?;
    let gradient = |i| tensor(&m, &format!("parametrizations.weight.original{}", i))?.grad();
    close(&gradient(0)?.unwrap(), &[4.856004, 5.475852, 49.164154])?;
    let want = [
        12.406111, 16.820957, 29.096064, 33.51091, -9.100447, -24.347815, -30.599688, -36.851563,
        1.479866, 67.08725, 34.036911, 99.644295,
    ];
    close(&gradient(1)?.unwrap(), &want)?;
    assert_eq!(m.parameters()?.len(), 3);
    // a change of the norms is seen by the next call
    tt::utils::vector_to_parameters(
        &Tensor::from(vec![0f32; 3]),
        &[tensor(&m, "parametrizations.weight.original0")?],
    )?;
    close(&m.forward(&input())?, &[0.5, -1.0, 0.25])?;
    assert!(m.freeze().is_err() && parametrize::is_parametrized(&m, Some("weight")));
    parametrize::remove_parametrizations(&m, "weight", true)?;
    assert_eq!(m.state_dict()?.names(), ["weight", "bias"]);
    assert!(!parametrize::is_parametrized(&m, None));
    assert!(parametrize::remove_parametrizations(&m, "weight", true).is_err());
    close(&m.freeze()?.forward(&input())?, &[0.5, -1.0, 0.25])?;

    let m = layer()?;
    parametrize::weight_norm(&m, "weight", None)?;
    close(&tensor(&m, "parametrizations.weight.original0")?, &[12.003332])?;
    assert!(parametrize::weight_norm(&layer()?, "weight", Some(2)).is_err());
    assert!(parametrize::weight_norm(&layer()?, "nothing", None).is_err());
    Ok(())
}

#[test]
fn spectral_norm_as_in_pytorch() -> Result<()> {
    let m = layer()?;
    parametrize::spectral_norm(&m, "weight", Default::default())?;
    let mut state: StateDict = m.state_dict()?;
    let path = "parametrizations.weight";
    let (u, v) = (format!("{}.0._u", path), format!("{}.0._v", path));
    assert_eq!(state.names(), ["bias", &format!("{}.original", path), &u, &v]);
    state.set(&u, &Tensor::from([1.0f32, 0.0, 0.0]))?;
    state.set(&v, &Tensor::from([0.0f32, 1.0, 0.0, 0.0]))?;
    m.load_state_dict(&state)?;
    let y = m.forward(&input())?;
    close(&y, &[0.999628, -1.499628, 1.748884])?;
    y.mul(&y)?.sum()?.backward()?;
    let want = [
        0.366845, 0.282074, 0.810018, 1.087874, 0.002773, -1.449663, -0.927797, -1.211768,
        0.293744, 1.139463, 1.236309, 1.638818,
    ];
    close(&tensor(&m, &format!("{}.original", path))?.grad()?.unwrap(), &want)?;
    close(&tensor(&m, &u)?, &[0.278677, 0.897958, -0.340605])?;
    m.train(false)?;
    close(&m.forward(&input())?, &[0.999628, -1.499628, 1.748884])?;
    close(&tensor(&m, &u)?, &[0.278677, 0.897958, -0.340605])?;
    parametrize::remove_parametrizations(&m, "weight", false)?;
    close(
        &m.forward(&input())?,
        &values(&layer()?.forward(&input())?)?.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(),
    )?;

    let m = layer()?;
    let weight = tensor(&m, "weight")?;
    parametrize::spectral_norm(&m, "weight", Default::default())?;
    let scaled = tensor(&m, "weight")?.detach()?.copy()?;
    parametrize::remove_parametrizations(&m, "weight", true)?;
    assert_eq!(tensor(&m, "weight")?.data_ptr(), weight.data_ptr());
    assert!(weight.allclose(&scaled, 1e-5, 1e-5, false)?);

    let turned = nn::conv_transpose2d(2, 3, &[2])?;
    parametrize::spectral_norm(&turned, "weight", Default::default())?;
    assert_eq!(tensor(&turned, &u)?.shape(), [3]);

    // [[1, 2i], [-3, 4]], whose largest singular value is 5.116673
    let numbers = Tensor::from_vec(vec![1.0f32, 0.0, 0.0, 2.0, -3.0, 0.0, 4.0, 0.0], &[2, 2, 2])?;
    let complex = numbers.view_as_complex()?.requires_grad_(true)?;
    let m = nn::linear(2, 2)?;
    m.register_parameter("weight", Some(&complex))?;
    let options = parametrize::SpectralNormOptions { n_power_iterations: 50, ..Default::default() };
    parametrize::spectral_norm(&m, "weight", options)?;
    m.register_parameter("bias", None)?;
    m.forward(&tt::ones(&[1, 2])?.to_dtype(DType::C64)?)?;
    close(&tensor(&m, "weight")?.linalg_svdvals()?.select(0, 0)?, &[1.0])?;
    assert!(parametrize::orthogonal(&nn_of(&complex)?, "weight", None, false).is_err());
    Ok(())
}
/// A layer with this weight.
fn nn_of(weight: &Tensor) -> Result<Module> {
    let m = nn::linear(2, 2)?;
    m.register_parameter("weight", Some(weight))?;
    Ok(m)
}

#[test]
fn orthogonal_as_in_pytorch() -> Result<()> {
    use parametrize::OrthogonalMap::*;
    let fifth = tensor(&layer()?, "weight")?.detach()?.mul_scalar(0.2)?;
    for (map, want) in [
        (MatrixExp, [2.407385, -2.303936, 4.110094]),
        (Cayley, [2.345492, -2.098146, 3.939784]),
        (Householder, [-1.183296, -0.129802, -4.258515]),
    ] {
        let m = layer()?;
        parametrize::orthogonal(&m, "weight", Some(map), false)?;
        let mut original = fifth.clone();
        if map == Householder {
            let lower = fifth.t()?.tril_with(tt::opts::TrilOpts::new().diagonal(-1))?;
            original = lower.t()?.add(&tt::eye_with(3, tt::opts::EyeOpts::new().m(4))?)?;
        }
        let mut state = m.state_dict()?;
        state.set("parametrizations.weight.original", &original)?;
        m.load_state_dict(&state)?;
        close(&m.forward(&input())?, &want)?;
    }
    for shape in [[3, 3], [2, 4], [4, 2]] {
        let m = nn::linear(shape[1], shape[0])?;
        parametrize::orthogonal(&m, "weight", None, true)?;
        m.forward(&tt::ones(&[1, shape[1]])?)?.sum()?.backward()?;
        let q = tensor(&m, "weight")?;
        let q = if shape[0] < shape[1] { q.t()? } else { q };
        let n = shape[0].min(shape[1]);
        assert!(q.t()?.matmul(&q)?.allclose(&tt::eye(n)?, 1e-5, 1e-5, false)?);
    }
    Ok(())
}

#[test]
fn parametrizations_follow_one_another() -> Result<()> {
    let m = layer()?;
    let twice = Module::from_fn("Twice", |x| x.mul_scalar(2))?;
    let more = Module::from_fn("More", |x| x.add_scalar(1))?;
    parametrize::register_parametrization(&m, "bias", &twice)?;
    parametrize::register_parametrization(&m, "bias", &more)?;
    assert_eq!(values(&tensor(&m, "bias")?)?, [2.0, -1.0, 1.5]);
    m.forward(&input())?.sum()?.backward()?;
    let original = tensor(&m, "parametrizations.bias.original")?;
    assert_eq!(values(&original.grad()?.unwrap())?, [2.0, 2.0, 2.0]);
    let wrong = Module::from_fn("Wrong", |x| x.sum())?;
    assert!(parametrize::register_parametrization(&m, "weight", &wrong).is_err());
    assert!(!parametrize::is_parametrized(&m, Some("weight")));
    m.forward(&input())?;
    let norm = nn::batch_norm1d(3)?;
    let e = parametrize::register_parametrization(&norm, "running_mean", &twice).unwrap_err();
    assert!(e.message.contains("must be a parameter") && norm.num_children() == 0);
    assert!(prune::identity(&norm, "running_mean").is_err());
    assert!(norm.get_tensor("running_mean_mask").is_err());
    Ok(())
}

#[test]
fn copies_compute_their_own_weights() -> Result<()> {
    let norms = "0.parametrizations.weight.original0";
    let m = layer()?;
    parametrize::weight_norm(&m, "weight", Some(0))?;
    let net = tt::sequential([m.clone(), m])?;
    let copy = net.copy()?;
    let average = net.averaged_model()?;
    let zeros = Tensor::from(vec![0f32; 3]);
    tt::utils::vector_to_parameters(&zeros, &[tensor(&copy, norms)?])?;
    let first = |net: &Module| net.child(0)?.forward(&input());
    close(&first(&copy)?, &[0.5, -1.0, 0.25])?;
    close(&first(&net)?, &[4.5, -5.0, 12.25])?;
    first(&copy)?.sum()?.backward()?;
    assert!(tensor(&copy, norms)?.grad()?.is_some());
    average.update_parameters(&copy)?;
    close(&first(&average.child(0)?)?, &[0.5, -1.0, 0.25])?;
    let shared = copy.child(1)?; // the same layer twice, as in the original
    assert!(parametrize::is_parametrized(&shared, Some("weight")));
    parametrize::remove_parametrizations(&copy.child(0)?, "weight", true)?;
    assert!(!parametrize::is_parametrized(&shared, None) && copy.freeze().is_ok());
    assert!(parametrize::is_parametrized(&net.child(0)?, None));

    let m = nn::linear(4, 4)?;
    prune::l1_unstructured(&m, "weight", 0.5, None)?;
    let layers = nn::transformer_encoder(&m, 2)?;
    let original = tensor(&layers, "layers.0.weight_orig")?;
    tt::utils::vector_to_parameters(&Tensor::from(vec![0f32; 16]), &[original])?;
    let last = layers.get_submodule("layers.1")?;
    layers.forward(&input())?;
    assert!(values(&tensor(&layers, "layers.0.weight")?)?.iter().all(|w| *w == 0.0));
    assert!(tensor(&last, "weight")?.equal(&tensor(&m, "weight")?)?);
    assert!(prune::is_pruned(&layers)?);
    prune::remove(&last, "weight")?;
    assert_eq!(last.copy()?.state_dict()?.names(), ["weight", "bias"]);
    Ok(())
}

#[test]
fn lazy_layers_take_sizes_from_the_first_input() -> Result<()> {
    let make = || tt::sequential![nn::lazy_batch_norm1d()?, nn::lazy_linear(3)?];
    let net = make()?;
    let sgd = tt::optim::sgd(net.parameters()?)?;
    let copy = net.copy()?;
    let x = tt::randn(&[5, 4])?;
    assert!(tt::graph::capture(|x| Ok(vec![net.forward(&x[0])?]), &[&x]).is_err());
    net.forward(&x)?.square()?.sum()?.backward()?;
    let weight = tensor(&net, "1.weight")?;
    let before = weight.detach()?.copy()?;
    assert_eq!(weight.shape(), [3, 4]);
    sgd.step()?;
    assert!(!weight.equal(&before)?);
    copy.load_state_dict(&net.state_dict()?)?;
    net.train(false)?;
    copy.train(false)?;
    assert!(copy.forward(&x)?.equal(&net.forward(&x)?)?);
    let options = tt::nn::Conv2dOpts::new().groups(2).padding(&[1]);
    let conv = nn::lazy_conv2d_with(6, &[3, 3], options)?;
    assert!(conv.forward(&tt::ones(&[3, 5, 5])?).is_err());
    assert_eq!(conv.forward(&tt::ones(&[4, 5, 5])?)?.shape(), [6, 5, 5]);
    assert_eq!(tensor(&conv, "weight")?.shape(), [6, 2, 3, 3]);
    Ok(())
}

#[test]
fn activations_of_transformers_are_any_modules() -> Result<()> {
    let options = nn::TransformerOpts::new().num_encoder_layers(1).num_decoder_layers(1);
    let both = nn::transformer_with(8, 2, options.dim_feedforward(12).dropout(0.0))?;
    let (x, y) = (tt::randn(&[3, 1, 8])?, tt::randn(&[2, 1, 8])?);
    let before = both.forward_list(&[&x, &y])?.remove(0);
    tt::utils::set_activation(&both, &nn::relu()?)?;
    assert!(both.forward_list(&[&x, &y])?[0].equal(&before)?);
    tt::utils::set_activation(&both, &Module::from_fn("Twice", |x| x.mul_scalar(2))?)?;
    assert!(!both.copy()?.forward_list(&[&x, &y])?[0].equal(&before)?);
    assert!(both.get_submodule("decoder.layers.0.activation").is_ok());
    assert!(tt::utils::set_activation(&nn::relu()?, &nn::relu()?).is_err());
    Ok(())
}

#[test]
fn special_functions_of_pytorch() -> Result<()> {
    use tt::special::*;
    let (one, two) = (Tensor::from(1), Tensor::from(2.0)); // integers in the default dtype
    let number = |t: Result<Tensor>| t?.item::<f64>();
    close(&bessel_j1(&one)?, &[0.4400505857449335])?;
    close(
        &tt::cat(&[bessel_y0(&one)?.view(&[1])?, bessel_y1(&one)?.view(&[1])?])?,
        &[0.08825696421567697, -0.7812128213002887],
    )?;
    let scaled = number(scaled_modified_bessel_k1(&two))? / 2f64.exp();
    assert!((number(modified_bessel_k1(&two))? - scaled).abs() < 1e-15);
    assert!((number(airy_ai(&Tensor::from(1.0)))? - 0.13529241631288147).abs() < 1e-15);
    assert!((number(spherical_bessel_j0(&two))? - 0.45464871341284085).abs() < 1e-15);
    assert_eq!(number(spherical_bessel_j0(&Tensor::from(0.0)))?, 1.0);
    let found = [
        chebyshev_polynomial_u(&two, 2),
        chebyshev_polynomial_v(&two, 2),
        chebyshev_polynomial_w(&two, 2),
        hermite_polynomial_h(&two, 3),
        hermite_polynomial_he(&two, 3),
        laguerre_polynomial_l(&two, 2),
        legendre_polynomial_p(&two, 2),
        shifted_chebyshev_polynomial_t(&two, 2),
        legendre_polynomial_p(&two, -1),
    ];
    let found = found.into_iter().map(number).collect::<Result<Vec<_>>>()?;
    assert_eq!(found, [15.0, 11.0, 19.0, 40.0, 2.0, -1.0, 5.5, 17.0, 0.0]);
    assert!(number(hermite_polynomial_h(&two, 513))?.is_nan());
    assert!(bessel_j0(&tt::ones(&[1])?.to_dtype(DType::C64)?).is_err());
    Ok(())
}

#[test]
fn batch_normalizations_are_fused() -> Result<()> {
    let (conv, norm) = (nn::conv_transpose2d(2, 3, &[2])?, nn::batch_norm2d(3)?);
    let x = tt::randn(&[4, 2, 5, 5])?;
    norm.forward(&conv.forward(&x)?.mul_scalar(3)?)?; // statistics
    norm.train(false)?;
    let part = |m: &Module, name| tensor(m, name);
    let (w, b) = tt::utils::fuse_conv_bn_weights(
        &part(&conv, "weight")?,
        Some(&part(&conv, "bias")?),
        &part(&norm, "running_mean")?,
        &part(&norm, "running_var")?,
        1e-5,
        Some(&part(&norm, "weight")?),
        Some(&part(&norm, "bias")?),
        true,
    )?;
    let both = norm.forward(&conv.forward(&x)?)?;
    conv.register_parameter("weight", Some(&w))?;
    conv.register_parameter("bias", Some(&b))?;
    assert!(conv.forward(&x)?.allclose(&both, 1e-4, 1e-5, false)? && w.requires_grad());
    Ok(())
}

#[test]
fn batch_normalizations_are_fused_with_layers() -> Result<()> {
    use tt::utils::{fuse_conv_bn_eval, fuse_linear_bn_eval};
    let grouped = nn::Conv2dOpts::new().groups(2).bias(false);
    let plain = nn::BatchNorm2dOpts::new().affine(false).eps(0.1);
    for (layer, norm, shape) in [
        (nn::conv1d(2, 4, &[3])?, nn::batch_norm1d(4)?, &[3, 2, 9][..]),
        (nn::conv2d_with(2, 4, &[3], grouped)?, nn::batch_norm2d_with(4, plain)?, &[3, 2, 5, 5]),
        (nn::conv_transpose2d(2, 4, &[3])?, nn::batch_norm2d(4)?, &[3, 2, 5, 5]),
        (nn::linear(5, 4)?, nn::batch_norm1d(4)?, &[3, 5]),
        (nn::linear(5, 4)?, nn::batch_norm1d(1)?, &[3, 1, 5]),
    ] {
        let is_linear = layer.class() == "Linear";
        let fuse = if is_linear { fuse_linear_bn_eval } else { fuse_conv_bn_eval };
        let x = tt::randn(shape)?;
        norm.forward(&layer.forward(&x)?.mul_scalar(3)?.add_scalar(1)?)?; // statistics
        assert!(fuse(&layer, &norm).unwrap_err().to_string().contains("evaluation mode"));
        layer.train(false)?;
        norm.train(false)?;
        let both = norm.forward(&layer.forward(&x)?)?;
        let fused = fuse(&layer, &norm)?;
        assert!(fused.forward(&x)?.allclose(&both, 1e-4, 1e-5, false)?);
        assert!(tensor(&fused, "weight")?.requires_grad());
        let wrong = if is_linear { fuse_conv_bn_eval } else { fuse_linear_bn_eval };
        assert_eq!(wrong(&layer, &norm).unwrap_err().status, Status::InvalidArg);
    }
    Ok(())
}

#[test]
fn a_function_is_linearized_once() -> Result<()> {
    let calls = std::cell::Cell::new(0);
    let w = tt::randn(&[2, 3])?.requires_grad_(true)?;
    let f = |x: &[Tensor]| {
        calls.set(calls.get() + 1);
        let sorted = x[0].argsort()?;
        Ok(vec![w.mv(&x[0].sin()?)?, sorted, tt::ones(&[2])?, x[0].mul(&x[1])?, x[1].clone()])
    };
    let (x, v) = ([tt::randn(&[3])?, tt::randn(&[3])?], [tt::randn(&[3])?, tt::randn(&[3])?]);
    let (results, derivative) = tt::no_grad(|| tt::linearize(f, &x))?;
    let products = [derivative.call(&v)?, derivative.call(&v)?];
    assert_eq!(calls.get(), 1);
    let (_, tangents) = tt::jvp(f, &x, &[Some(&v[0]), Some(&v[1])])?;
    for (i, tangent) in tangents.iter().enumerate() {
        assert_eq!(products[0][i].dtype(), results[i].dtype());
        let tangent = tangent.clone().map_or_else(|| results[i].zeros_like(), Ok)?;
        assert!(products.iter().all(|p| p[i].allclose(&tangent, 1e-6, 1e-6, false).unwrap()));
        assert!(!results[i].requires_grad() && !products[0][i].requires_grad());
    }
    let e = derivative.call(&v[..1]).unwrap_err();
    assert_eq!(e.to_string(), "linearize: 1 tangents for 2 inputs");
    let e = derivative.call(&[&v[0], &tt::ones(&[2])?]).unwrap_err();
    assert_eq!((e.status, e.to_string().contains("tangent 1")), (Status::Shape, true));
    Ok(())
}

#[test]
fn states_of_models_are_stacked() -> Result<()> {
    let model = || tt::sequential([nn::linear(3, 2)?, nn::batch_norm1d(2)?]);
    let models = [model()?, model()?];
    let (params, buffers) = tt::stack_module_state(&models)?;
    assert_eq!(params.names(), models[0].named_parameters()?.names());
    assert_eq!(buffers.tensor("1.num_batches_tracked")?.shape(), [2]);
    assert!(params.values().all(|t| t.requires_grad() && t.is_leaf()));
    let second = params.tensor("0.weight")?.select(0, 1)?;
    assert!(second.equal(&tensor(&models[1], "0.weight")?)?);
    models[1].train(false)?;
    let why = |models: &[Module]| tt::stack_module_state(models).unwrap_err().to_string();
    assert!(why(&models).ends_with("the same training mode"));
    assert!(why(&[nn::linear(1, 1)?, nn::relu()?]).ends_with("the same class"));
    assert!(why(&[model()?, tt::sequential([nn::relu()?])?]).ends_with("the same names"));
    assert!(why(&[]).ends_with("there are no models"));
    Ok(())
}

fn mask(m: &Module) -> Result<Vec<i32>> {
    tensor(m, "weight_mask")?.to_dtype(DType::I32)?.reshape(&[-1])?.to_vec()
}

#[test]
fn pruning_as_in_pytorch() -> Result<()> {
    let m = layer()?;
    prune::l1_unstructured(&m, "weight", 4, None)?;
    assert_eq!(mask(&m)?, [1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0]);
    prune::l1_unstructured(&m, "weight", 0.5, None)?;
    assert_eq!(mask(&m)?, [1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0]);
    prune::ln_structured(&m, "weight", 1, 2.0, 0, None)?;
    assert_eq!(mask(&m)?, [1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
    assert_eq!(m.state_dict()?.names(), ["bias", "weight_orig", "weight_mask"]);
    m.forward(&input())?.sum()?.backward()?;
    let gradient = tensor(&m, "weight_orig")?.grad()?.unwrap();
    close(&gradient, &[1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 4.0, 0.0, 0.0, 0.0, 0.0])?;
    let net = tt::sequential([m.clone()])?;
    assert!(prune::is_pruned(&net)? && net.freeze().is_err());
    let y = values(&m.forward(&input())?)?;
    let original = tensor(&m, "weight_orig")?;
    prune::remove(&m, "weight")?;
    assert_eq!(tensor(&m, "weight")?.data_ptr(), original.data_ptr()); // optimizers know it
    assert!(!prune::is_pruned(&net)? && prune::remove(&m, "weight").is_err());
    assert_eq!(values(&net.freeze()?.forward(&input())?)?, y);

    let m = layer()?;
    prune::ln_structured(&m, "weight", 0.5, 1.0, -1, None)?;
    assert_eq!(mask(&m)?, [1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0]);
    prune::l1_unstructured(&m, "weight", 0.5, None)?;
    assert_eq!(mask(&m)?, [1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0]);
    prune::custom_from_mask(&m, "weight", &Tensor::from([[0, 1, 1, 1]; 3]))?;
    assert_eq!(mask(&m)?, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);

    let (a, b) = (layer()?, layer()?);
    let half = tensor(&b, "weight")?.detach()?.mul_scalar(0.5)?.requires_grad_(true)?;
    b.register_parameter("weight", Some(&half))?;
    let both = [(&a, "weight"), (&b, "weight")];
    prune::global_unstructured(&both, prune::Method::L1Unstructured, 0.5)?;
    assert_eq!(mask(&a)?, [1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 0]);
    assert_eq!(mask(&b)?, [1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0]);

    tt::manual_seed(4)?; // as in Python from this seed
    let m = nn::linear(4, 3)?;
    prune::random_unstructured(&m, "weight", 5)?;
    assert_eq!(mask(&m)?, [1, 0, 1, 1, 0, 1, 1, 0, 1, 0, 1, 0]);
    prune::random_structured(&m, "weight", 1, 1)?;
    assert_eq!(mask(&m)?, [0, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 0]);
    let m = layer()?;
    prune::identity(&m, "weight")?;
    prune::random_structured(&m, "weight", 1, 1)?;
    assert_eq!(mask(&m)?.iter().sum::<i32>(), 9);
    for e in [
        prune::l1_unstructured(&m, "weight", 1.5, None),
        prune::l1_unstructured(&m, "weight", 13, None),
        prune::random_structured(&m, "weight", 1, 2),
        prune::custom_from_mask(&m, "weight", &tt::ones(&[4])?),
    ] {
        assert_eq!(e.unwrap_err().status, Status::InvalidArg);
    }
    let e = prune::random_unstructured(&m, "nothing", 1).unwrap_err();
    assert_eq!(e.status, Status::Index);
    Ok(())
}

#[test]
fn gradients_are_checked() -> Result<()> {
    let x = Tensor::from([0.3, 1.2]).requires_grad_(true)?;
    let z = Tensor::from([1.0, -0.5, 0.25, 2.0]).reshape(&[2, 2])?.view_as_complex()?;
    let z = z.detach()?.copy()?.requires_grad_(true)?;
    let f = |t: &[Tensor]| Ok(vec![t[1].mul(&t[1])?.mul(&t[0])?, t[1].abs()?]);
    tt::gradcheck(f, &[&x, &z], Default::default())?;
    tt::gradgradcheck(f, &[&x, &z], Default::default())?;
    let conj = |t: &[Tensor]| Ok(vec![t[0].mul(&t[0].detach()?)?]); // half of the gradient
    let e = tt::gradcheck(conj, &[&x], Default::default()).unwrap_err();
    assert!(e.status == Status::Autograd && e.message.contains("number 0 of input 0 is 0.3"));
    let random = |t: &[Tensor]| Ok(vec![t[0].mul(&t[0].rand_like()?)?]);
    assert!(tt::gradcheck(random, &[&x], Default::default()).is_err());
    let none = tt::gradcheck(f, &[&x.detach()?, &z.detach()?], Default::default());
    assert_eq!(none.unwrap_err().status, Status::InvalidArg);
    Ok(())
}

#[test]
fn tools_of_training() -> Result<()> {
    let layers = [nn::linear(3, 3)?, nn::tanh()?, nn::linear(3, 3)?, nn::dropout()?, nn::tanh()?];
    let x = tt::rand(&[2, 3])?.requires_grad_(true)?;
    let weight = tensor(&layers[0], "weight")?;
    let gradient = |segments| {
        tt::manual_seed(5)?;
        let y = tt::checkpoint_sequential(&layers, segments, &x)?.sum()?;
        tt::grad(&[&y], &[&weight], GradOpts::new())?[0].as_ref().unwrap().to_vec::<f32>()
    };
    assert_eq!(gradient(1)?, gradient(2)?);
    assert_eq!(gradient(1)?, gradient(5)?);
    assert!(tt::checkpoint_sequential(&layers, 6, &x).is_err());
    let y = tt::checkpoint_sequential(&layers, 2, &x)?.sum()?;
    std::thread::scope(|s| {
        let e = s.spawn(|| y.backward().unwrap_err()).join().unwrap();
        assert!(e.cause.as_ref().unwrap().message.contains("another thread"));
    });

    let data = tt::Dataset::of_tensors([tt::arange(0, 10)?])?;
    let parts = data.random_split(&[2, 0, 8])?;
    let mut seen = vec![];
    for part in &parts {
        for i in 0..part.size().unwrap() {
            seen.push(part.get(i)?[0].item::<i64>()?);
        }
    }
    assert_ne!(seen, (0..10).collect::<Vec<_>>());
    seen.sort_unstable();
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
    let sizes = |parts: Vec<tt::Dataset>| parts.iter().map(|d| d.size()).collect::<Vec<_>>();
    assert_eq!(sizes(data.random_split_by(&[0.25, 0.75])?), [Some(3), Some(7)]);
    assert!(data.random_split(&[i64::MAX, i64::MAX, 12]).is_err());
    assert!(data.random_split(&[3, 3]).is_err() && data.random_split_by(&[0.5, 0.4]).is_err());

    let sparse = tt::init::sparse(&[10, 4], 0.25, 0.01)?;
    let zeros = sparse.eq_scalar(0)?.sum_dim(&[0])?;
    assert_eq!(zeros.to_vec::<i64>()?, [3; 4]);
    assert!(!sparse.signbit()?.logical_and(&sparse.eq_scalar(0)?)?.any()?.item::<bool>()?);
    assert!(tt::init::sparse(&[10], 0.25, 0.01).is_err());

    let wide = tt::randn(&[2, 3, 12])?.to_dtype(DType::F64)?; // two matrices of rank 3
    let (u, s, v) = tt::utils::svd_lowrank(&wide, 3, 1)?;
    let near = u.mul(&s.unsqueeze(-2)?)?.matmul(&v.adjoint()?)?;
    assert!(near.allclose(&wide, 1e-9, 1e-9, false)?);
    let line = Tensor::from([[7.6, 1.8], [7.0, 1.0], [4.0, -3.0]]); // along (0.6, 0.8)
    let (_, _, v) = tt::utils::pca_lowrank(&line, 1, 2)?;
    assert!((v.abs()?.to_vec::<f64>()?[0] - 0.6).abs() < 1e-9);
    assert!(tt::utils::pca_lowrank(&tt::ones(&[3, 2])?, 3, 2).is_err());

    let total =
        tt::utils::get_total_norm(&[Tensor::from([3.0f32]), Tensor::from([4.0f32])], 1.0, true)?;
    assert_eq!(total.item::<f32>()?, 7.0);
    assert!(tt::utils::get_total_norm(&[Tensor::from([f32::NAN])], 2.0, true).is_err());
    let wrong = tt::utils::vector_to_parameters(&tt::ones(&[8])?, &[&weight]);
    assert_eq!(wrong.unwrap_err().status, Status::Shape);
    Ok(())
}
