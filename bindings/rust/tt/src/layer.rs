//! Custom layers: the trait [`Layer`], the macro [`module!`](crate::module!) that implements it for
//! a struct, and sequences of layers.
use crate::error::{Error, Result};
use crate::opts::ModuleLoadStateDictOpts;
use crate::{Handle, Module, StateDict, Status, Tensor};
use std::any::Any;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// A layer, or a tree of layers: [`Module`], structs declared by [`module!`](crate::module!), and
/// references, `Box`, `Rc` and `Arc` of any of them. PyTorch calls it a module.
///
/// A manual implementation provides `forward`, and `module` with [`Module::custom`]; the other
/// methods have defaults. A layer of several inputs or results has a method of its own in place of
/// `forward`, which then fails with `Status::NotImplemented`.
#[doc(alias = "Module")]
pub trait Layer {
    /// Computes the result for one tensor.
    fn forward(&self, _input: &Tensor) -> Result<Tensor> {
        let why = "forward: the layer does not take one tensor: call its own method";
        Err(Error::new(Status::NotImplemented, why))
    }
    /// Returns the layer as a tt module, which shares its children and parameters. For a struct
    /// declared by [`module!`](crate::module!), each call makes another module: hooks registered
    /// with it do not run in `forward` of the struct.
    fn module(&self) -> Result<Module>;

    /// Returns the children by name, in order.
    fn children(&self) -> Result<Vec<(String, Module)>> {
        let module = self.module()?;
        let names = (0..module.num_children()).filter_map(|i| Some((i, module.child_name(i)?)));
        names.map(|(i, name)| Ok((name, module.child(i)?))).collect()
    }
    /// Returns the layer's module and all below it, each once, the parents first. PyTorch's `apply`
    /// is a loop over them.
    ///
    /// ```
    /// use tt::{init, nn, Layer};
    /// let net = tt::sequential([nn::linear(4, 8)?, nn::relu()?, nn::linear(8, 2)?])?;
    /// for m in net.modules()?.iter().filter(|m| m.class() == "Linear") {
    ///     let shape = m.get_tensor("weight")?.unwrap().shape().to_vec();
    ///     let weight = init::normal(&shape, 0.0, 0.02)?.requires_grad_(true)?;
    ///     m.register_parameter("weight", Some(&weight))?;
    /// }
    /// # Ok::<(), tt::Error>(())
    /// ```
    #[doc(alias = "apply")]
    fn modules(&self) -> Result<Vec<Module>> {
        Ok(self.named_modules()?.into_iter().map(|(_, module)| module).collect())
    }
    /// As [`modules`](Layer::modules), by the first path of each, such as "layers.0". The path of
    /// the layer itself is empty.
    fn named_modules(&self) -> Result<Vec<(String, Module)>> {
        let (mut found, mut seen) = (vec![], HashSet::new());
        let mut left = vec![(String::new(), self.module()?)];
        while let Some((path, module)) = left.pop() {
            if !seen.insert(module.raw()) {
                continue;
            }
            let prefix = if path.is_empty() { path.clone() } else { format!("{}.", path) };
            let children = module.children()?.into_iter().rev();
            left.extend(children.map(|(name, child)| (format!("{}{}", prefix, name), child)));
            found.push((path, module));
        }
        Ok(found)
    }
    /// Returns the parameters, each once.
    fn parameters(&self) -> Result<Vec<Tensor>> {
        self.module()?.parameters()
    }
    /// Returns the parameters, each once, under its first name.
    fn named_parameters(&self) -> Result<StateDict> {
        self.module()?.named_parameters()
    }
    /// Returns the parameters and persistent buffers under all their names. They share memory with
    /// the layer.
    fn state_dict(&self) -> Result<StateDict> {
        self.module()?.state_dict()
    }
    /// Copies the values of a state dict into the layer: all, or none if one does not fit.
    fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        self.module()?.load_state_dict(state)
    }
    /// As [`load_state_dict`](Layer::load_state_dict), with options: without `strict`, names that
    /// only one side has are left out.
    ///
    /// ```
    /// use tt::{nn, opts::ModuleLoadStateDictOpts, Layer};
    /// let trained = tt::sequential![nn::linear(4, 8)?, nn::relu()?, nn::linear(8, 10)?]?;
    /// let own = tt::sequential![nn::linear(4, 8)?, nn::relu()?, nn::linear(8, 2)?]?;
    /// let state = trained.state_dict()?;
    /// let body = state.iter().filter(|(name, _)| name.starts_with("0.")).collect();
    /// own.load_state_dict_with(&body, ModuleLoadStateDictOpts::new().strict(false))?;
    /// own.child(0)?.requires_grad_(false)?;
    /// let left = own.parameters()?.into_iter().filter(|p| p.requires_grad());
    /// assert_eq!(left.count(), 2);
    /// # Ok::<(), tt::Error>(())
    /// ```
    fn load_state_dict_with(&self, state: &StateDict, opts: ModuleLoadStateDictOpts) -> Result<()> {
        self.module()?.load_state_dict_with(state, opts)
    }
    /// Sets whether the parameters require gradients.
    fn requires_grad_(&self, on: bool) -> Result<()> {
        self.module()?.requires_grad_(on)
    }
    /// Sets training mode or, with false, evaluation mode for this layer and all layers below it.
    /// [`Module::training`] returns the mode of a child.
    fn train(&self, on: bool) -> Result<()> {
        self.module()?.train(on)
    }
    /// Clears the gradients of all parameters.
    fn zero_grad(&self) -> Result<()> {
        self.module()?.zero_grad()
    }
}

impl Layer for Module {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        Module::forward(self, input)
    }
    fn module(&self) -> Result<Module> {
        Ok(self.clone())
    }
}
macro_rules! pointers {
    ($($t:ty)*) => { $(
        impl<L: Layer + ?Sized> Layer for $t {
            fn forward(&self, input: &Tensor) -> Result<Tensor> {
                (**self).forward(input)
            }
            fn module(&self) -> Result<Module> {
                (**self).module()
            }
            fn children(&self) -> Result<Vec<(String, Module)>> {
                (**self).children()
            }
            fn parameters(&self) -> Result<Vec<Tensor>> {
                (**self).parameters()
            }
            fn named_parameters(&self) -> Result<StateDict> {
                (**self).named_parameters()
            }
            fn state_dict(&self) -> Result<StateDict> {
                (**self).state_dict()
            }
            fn load_state_dict(&self, state: &StateDict) -> Result<()> {
                (**self).load_state_dict(state)
            }
            fn train(&self, on: bool) -> Result<()> {
                (**self).train(on)
            }
            fn zero_grad(&self) -> Result<()> {
                (**self).zero_grad()
            }
        }
    )* };
}
pointers!(&L Box<L> Rc<L> Arc<L>);

/// Makes a module that calls layers in turn. [`sequential!`](crate::sequential!) takes layers of
/// several types.
///
/// ```
/// use tt::nn;
/// let sizes = [4, 8, 8, 2];
/// let layers = sizes.windows(2).map(|n| nn::linear(n[0], n[1])).collect::<tt::Result<Vec<_>>>()?;
/// let net = tt::sequential(layers)?;
/// assert_eq!(net.forward(&tt::zeros(&[3, 4])?)?.shape(), [3, 2]);
/// println!("{}", net);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn sequential(layers: impl IntoIterator<Item = impl Layer>) -> Result<Module> {
    let all = crate::nn::sequential()?;
    layers.into_iter().try_for_each(|layer| all.append(&layer.module()?))?;
    Ok(all)
}

/// Makes a module that holds parameters by index: "0", "1", …
///
/// ```
/// let scales = tt::parameter_list([tt::ones(&[2])?, tt::zeros(&[3])?])?;
/// assert_eq!(scales.parameters()?.len(), 2);
/// assert_eq!(scales.get_tensor("1")?.unwrap().shape(), [3]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn parameter_list(tensors: impl IntoIterator<Item = Tensor>) -> Result<Module> {
    let all = crate::nn::parameter_list()?;
    for (i, t) in tensors.into_iter().enumerate() {
        all.register_parameter(&i.to_string(), Some(&t.requires_grad_(true)?))?;
    }
    Ok(all)
}

/// Makes a module that holds parameters by name.
///
/// ```
/// let scales = tt::parameter_dict([("left", tt::ones(&[2])?), ("right", tt::zeros(&[3])?)])?;
/// assert_eq!(scales.get_tensor("right")?.unwrap().shape(), [3]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn parameter_dict<'a>(tensors: impl IntoIterator<Item = (&'a str, Tensor)>) -> Result<Module> {
    let all = crate::nn::parameter_dict()?;
    for (name, t) in tensors {
        all.register_parameter(name, Some(&t.requires_grad_(true)?))?;
    }
    Ok(all)
}

/// Returns the additive mask (size, size) of causal attention, of the default dtype: -inf above the
/// diagonal, else 0, so that query i attends to keys 0 … i.
///
/// ```
/// use tt::nn;
/// let layer = nn::transformer_encoder_layer(8, 2)?;
/// let opts = nn::TransformerEncoderOpts::new();
/// let norm = nn::layer_norm(&[8])?;
/// let encoder = nn::transformer_encoder_with(&layer, 2, opts.norm(&norm))?;
/// let mask = tt::generate_square_subsequent_mask(5)?;
/// let y = encoder.forward_list(&[tt::rand(&[5, 3, 8])?, mask])?;
/// assert_eq!(y[0].shape(), [5, 3, 8]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn generate_square_subsequent_mask(size: i64) -> Result<Tensor> {
    let all = crate::full(&[size, size], f64::NEG_INFINITY)?;
    all.triu_with(crate::opts::TriuOpts::new().diagonal(1))
}

/// Makes a module that calls layers in turn; their types may differ.
///
/// ```
/// use tt::{nn, Module};
/// let double = Module::from_fn("Double", |x| x.mul_scalar(2))?;
/// let net = tt::sequential![nn::linear(4, 2)?, double, nn::relu()?]?;
/// assert_eq!(net.num_children(), 3);
/// # Ok::<(), tt::Error>(())
/// ```
#[macro_export]
macro_rules! sequential {
    ($($layer:expr),* $(,)?) => { $crate::__private::sequential_of(&[$(&$layer),*]) };
}

/// Makes a sequence for the macro.
pub fn sequential_of(layers: &[&dyn Layer]) -> Result<Module> {
    sequential(layers)
}

/// Declares a struct that is a [`Layer`](crate::Layer). Under their names, module fields become
/// children and tensor fields become parameters.
///
/// ```
/// use tt::{nn, Layer, Module, Result, Tensor};
///
/// tt::module! {
///     /// Adds the output of two layers to the input.
///     #[derive(Debug)]
///     pub struct Residual {
///         first: Module,
///         second: Module,
///         scale: Tensor,
///         slope: f64,
///     }
///
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         let opts = tt::opts::LeakyReluOpts::new().negative_slope(self.slope);
///         let hidden = self.first.forward(x)?.leaky_relu_with(opts)?;
///         Ok(x + self.second.forward(&hidden)? * &self.scale)
///     }
/// }
///
/// let block = Residual {
///     first: nn::linear(4, 8)?,
///     second: nn::linear(8, 4)?,
///     scale: tt::ones(&[1])?.requires_grad_(true)?,
///     slope: 0.1,
/// };
/// let x = tt::randn(&[3, 4])?;
/// let alone = block.forward(&x)?;
/// let names: Vec<String> = block.named_parameters()?.keys().collect();
/// assert_eq!(names, ["scale", "first.weight", "first.bias", "second.weight", "second.bias"]);
///
/// let net = tt::sequential![block, nn::relu()?]?;
/// assert_eq!(net.forward(&x)?.to_vec::<f32>()?, alone.relu()?.to_vec::<f32>()?);
/// # Ok::<(), tt::Error>(())
/// ```
///
/// A layer of several inputs or results has no `forward` here, but a method of its own:
/// ```
/// use tt::{nn, Layer, Module, Result, Tensor};
///
/// tt::module! {
///     struct Tagger { embed: Module, rnn: Module, head: Module }
/// }
/// impl Tagger {
///     fn forward(&self, words: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
///         let mut out = self.rnn.forward_opt(&[Some(&self.embed.forward(words)?), state])?;
///         let state = out.remove(1);
///         Ok((self.head.forward(&out[0])?, state))
///     }
/// }
/// let (embed, rnn, head) = (nn::embedding(9, 4)?, nn::gru(4, 8)?, nn::linear(8, 3)?);
/// let tagger = Tagger { embed, rnn, head };
/// let (scores, state) = tagger.forward(&tt::zeros(&[5])?.to_dtype(tt::DType::I64)?, None)?;
/// assert_eq!((scores.shape(), state.shape()), (&[5, 3][..], &[1, 8][..]));
/// assert_eq!(tagger.parameters()?.len(), 7);
/// # Ok::<(), tt::Error>(())
/// ```
///
/// A struct has no mode of its own: in `forward`, ask a child, such as `self.first.training()`; a
/// struct without children can have an [`identity`](crate::nn::identity) for that.
///
/// Fields may be [`Module`](crate::Module), [`Tensor`](crate::Tensor), [`Buffer`](crate::Buffer),
/// numbers, `bool`, `String`, other structs of this macro, and `Option` and `Vec` of these;
/// [`Member`](crate::Member) adds types. The module that tt sees
/// ([`Layer::module`](crate::Layer::module)) owns the children and parameters and rebuilds the
/// struct from them for each call: it can be copied, loaded, and called from many threads
/// ([`Module::freeze`](crate::Module::freeze)).
#[macro_export]
macro_rules! module {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_attribute:meta])* $field_vis:vis $field:ident : $type:ty),* $(,)?
        }
        $($forward:tt)*
    ) => {
        $(#[$attribute])*
        $vis struct $name {
            $($(#[$field_attribute])* $field_vis $field: $type),*
        }
        impl $crate::Layer for $name {
            $($forward)*
            fn module(&self) -> $crate::Result<$crate::Module> {
                $crate::__private::module_of_members(::std::stringify!($name), self)
            }
        }
        #[allow(unused_variables, unused_mut)] // for structs without fields
        impl $crate::__private::Members for $name {
            fn kept(&self) -> $crate::__private::Kept {
                let mut kept = $crate::__private::Kept::default();
                $(kept.push($crate::Member::plain(&self.$field));)*
                kept
            }
            fn register(&self, module: &$crate::Module) -> $crate::Result<()> {
                $($crate::Member::register(&self.$field, ::std::stringify!($field), module)?;)*
                ::std::result::Result::Ok(())
            }
            fn restore(
                module: &$crate::Module,
                kept: &$crate::__private::Kept,
            ) -> $crate::Result<Self> {
                let mut kept = kept.iter();
                ::std::result::Result::Ok($name {
                    $($field: $crate::Member::restore(
                        ::std::stringify!($field),
                        module,
                        kept.next::<<$type as $crate::Member>::Plain>(),
                    )?),*
                })
            }
        }
        impl $crate::Member for $name {
            type Plain = $crate::__private::Kept;
            fn plain(&self) -> $crate::__private::Kept {
                $crate::__private::Members::kept(self)
            }
            fn register(&self, name: &str, module: &$crate::Module) -> $crate::Result<()> {
                module.register_module(name, &$crate::Layer::module(self)?)
            }
            fn restore(
                name: &str,
                module: &$crate::Module,
                kept: &$crate::__private::Kept,
            ) -> $crate::Result<Self> {
                $crate::__private::Members::restore(&module.get_submodule(name)?, kept)
            }
        }
    };
}

/// A type for fields of structs declared by [`module!`](crate::module!).
///
/// An implementation for plain data:
/// ```
/// #[derive(Clone)]
/// enum Mode { Fast, Exact }
/// impl tt::Member for Mode {
///     type Plain = Mode;
///     fn plain(&self) -> Mode { self.clone() }
///     fn restore(_: &str, _: &tt::Module, plain: &Mode) -> tt::Result<Mode> { Ok(plain.clone()) }
/// }
/// # let _ = (Mode::Fast, Mode::Exact);
/// ```
pub trait Member: Sized {
    /// The data that the module keeps in addition to children and parameters.
    type Plain: Send + Sync + 'static;
    /// Returns this data.
    fn plain(&self) -> Self::Plain;
    /// Registers children and parameters under a name.
    fn register(&self, _name: &str, _module: &Module) -> Result<()> {
        Ok(())
    }
    /// Rebuilds the field from the entry registered under its name and the kept data.
    fn restore(name: &str, module: &Module, plain: &Self::Plain) -> Result<Self>;
}

impl Member for Module {
    type Plain = ();
    fn plain(&self) {}
    fn register(&self, name: &str, module: &Module) -> Result<()> {
        module.register_module(name, self)
    }
    fn restore(name: &str, module: &Module, _: &()) -> Result<Module> {
        module.get_submodule(name)
    }
}

impl Member for Tensor {
    type Plain = ();
    fn plain(&self) {}
    fn register(&self, name: &str, module: &Module) -> Result<()> {
        module.register_parameter(name, Some(self))
    }
    fn restore(name: &str, module: &Module, _: &()) -> Result<Tensor> {
        let absent = || Error::new(Status::InvalidArg, format!("{} was removed", name));
        module.get_tensor(name)?.ok_or_else(absent)
    }
}

/// A tensor field of a [`module!`](crate::module!) struct that is saved with the module but not
/// trained, such as a running mean.
///
/// ```
/// use tt::{Buffer, Layer, Result, Tensor};
/// tt::module! {
///     struct Shift {
///         by: Buffer,
///     }
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         x.add(&self.by)
///     }
/// }
/// let shift = Shift { by: tt::ones(&[1])?.into() };
/// assert_eq!(shift.state_dict()?.names(), ["by"]);
/// assert!(shift.parameters()?.is_empty());
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Buffer(pub Tensor);
impl std::ops::Deref for Buffer {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.0
    }
}
impl From<Tensor> for Buffer {
    fn from(t: Tensor) -> Buffer {
        Buffer(t)
    }
}
impl Member for Buffer {
    type Plain = ();
    fn plain(&self) {}
    fn register(&self, name: &str, module: &Module) -> Result<()> {
        module.register_buffer(name, Some(&self.0), true)
    }
    fn restore(name: &str, module: &Module, _: &()) -> Result<Buffer> {
        Tensor::restore(name, module, &()).map(Buffer)
    }
}

impl<M: Member> Member for Option<M> {
    type Plain = Option<M::Plain>;
    fn plain(&self) -> Self::Plain {
        self.as_ref().map(M::plain)
    }
    fn register(&self, name: &str, module: &Module) -> Result<()> {
        self.as_ref().map_or(Ok(()), |member| member.register(name, module))
    }
    fn restore(name: &str, module: &Module, plain: &Self::Plain) -> Result<Self> {
        plain.as_ref().map(|plain| M::restore(name, module, plain)).transpose()
    }
}

/// The items are children or parameters "0", "1", … of a `ModuleList` under the field's name.
impl<M: Member> Member for Vec<M> {
    type Plain = Vec<M::Plain>;
    fn plain(&self) -> Self::Plain {
        self.iter().map(M::plain).collect()
    }
    fn register(&self, name: &str, module: &Module) -> Result<()> {
        let list = crate::nn::module_list()?;
        for (i, member) in self.iter().enumerate() {
            member.register(&i.to_string(), &list)?;
        }
        module.register_module(name, &list)
    }
    fn restore(name: &str, module: &Module, plain: &Self::Plain) -> Result<Self> {
        let list = module.get_submodule(name)?;
        let items = plain.iter().enumerate();
        items.map(|(i, plain)| M::restore(&i.to_string(), &list, plain)).collect()
    }
}

macro_rules! plain_members {
    ($($t:ty)*) => { $(
        impl Member for $t {
            type Plain = $t;
            fn plain(&self) -> $t {
                self.clone()
            }
            fn restore(_: &str, _: &Module, plain: &$t) -> Result<$t> {
                Ok(plain.clone())
            }
        }
    )* };
}
plain_members!(bool u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64 String);

/// The fields of a [`module!`](crate::module!) struct.
pub trait Members: Sized {
    /// Returns the data that the module keeps.
    fn kept(&self) -> Kept;
    /// Registers children and parameters with the module.
    fn register(&self, module: &Module) -> Result<()>;
    /// Rebuilds the struct for a call.
    fn restore(module: &Module, kept: &Kept) -> Result<Self>;
}

/// The data that a module keeps for the fields of a struct, in order. It is boxed so that the types
/// of private fields do not become public.
#[derive(Debug, Default)]
pub struct Kept(Vec<Box<dyn Any + Send + Sync>>);

/// Iterates over the kept data, whose types differ.
#[derive(Debug)]
pub struct KeptIter<'a>(std::slice::Iter<'a, Box<dyn Any + Send + Sync>>);

impl Kept {
    /// Adds the data of a field.
    pub fn push<T: Send + Sync + 'static>(&mut self, field: T) {
        self.0.push(Box::new(field));
    }
    /// Iterates over the data, in the order of the fields.
    pub fn iter(&self) -> KeptIter<'_> {
        KeptIter(self.0.iter())
    }
}
impl<'a> KeptIter<'a> {
    /// Returns the data of the next field.
    #[allow(clippy::should_implement_trait)] // the type of the item varies
    pub fn next<T: 'static>(&mut self) -> &'a T {
        self.0.next().and_then(|field| field.downcast_ref()).expect("the fields that were kept")
    }
}

/// Makes the module of a struct, which registers its fields.
pub fn module_of_members<L: Layer + Members + 'static>(name: &str, layer: &L) -> Result<Module> {
    let kept = layer.kept();
    let module = Module::custom(name, move |module, inputs| match inputs {
        [Some(x)] => Ok(vec![L::restore(module, &kept)?.forward(x)?]),
        _ => Err(Error::new(Status::InvalidArg, format!("{} inputs: takes one", inputs.len()))),
    })?;
    layer.register(&module)?;
    Ok(module)
}
