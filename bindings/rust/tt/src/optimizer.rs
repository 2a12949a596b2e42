//! Learning rates and state dicts of optimizers and schedulers. The other methods are generated
//! from tt.h.
use crate::error::Result;
use crate::{Optimizer, Scheduler, StateDict, Tensor};

/// # Learning rate and state
impl Optimizer {
    /// Returns the learning rate of the first parameter group.
    pub fn lr(&self) -> Result<f64> {
        self.get_f64(0, "lr")
    }
    /// Sets the learning rate of all parameter groups.
    ///
    /// ```
    /// let sgd = tt::optim::sgd(tt::nn::linear(2, 1)?.parameters()?)?;
    /// sgd.set_lr(0.5)?;
    /// assert_eq!(sgd.lr()?, 0.5);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn set_lr(&self, lr: f64) -> Result<()> {
        (0..self.num_groups()).try_for_each(|group| self.set_f64(group, "lr", lr))
    }
    /// Returns the whole state: tensors under names such as "state.3.exp_avg", and numbers, as
    /// 0-dimensional float64 tensors, under "state.3.step" and "param_groups.0.lr". The tensors are
    /// shared with the optimizer.
    ///
    /// ```
    /// let net = tt::nn::linear(2, 1)?;
    /// let adam = tt::optim::adam(net.parameters()?)?;
    /// net.forward(&tt::ones(&[1, 2])?)?.sum()?.backward()?;
    /// adam.step()?;
    /// let state = adam.state_dict()?;
    /// assert_eq!(state.tensor("state.0.step")?.item::<i64>()?, 1);
    /// tt::optim::adam(net.parameters()?)?.load_state_dict(&state)?;
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn state_dict(&self) -> Result<StateDict> {
        let mut state = StateDict::new()?;
        for i in 0..self.num_tensors() {
            let (name, tensor) = self.tensor_at(i)?;
            state.insert(&name, &tensor)?;
        }
        insert_numbers(&mut state, self.num_numbers(), |i| self.number_at(i))?;
        Ok(state)
    }
    /// Loads a state that [`state_dict`](Optimizer::state_dict) returned for this optimizer or one
    /// with as many parameters: the whole state, or nothing if an entry does not fit.
    pub fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        let before = self.state_dict()?;
        let loaded = self.load_entries(state);
        if loaded.is_err() {
            for name in state.keys().filter(|name| !before.contains_key(name)) {
                self.remove_entry(&name);
            }
            self.load_entries(&before)?;
        }
        loaded
    }
    fn load_entries(&self, state: &StateDict) -> Result<()> {
        for (name, value) in state {
            if name.starts_with("param_groups.") || name.ends_with(".step") {
                self.load_number(&name, value.item()?)?;
            } else {
                self.load_tensor(&name, &value)?;
            }
        }
        Ok(())
    }
    /// Removes an entry such as "state.3.exp_avg" or "param_groups.0.initial_lr" if it exists.
    fn remove_entry(&self, name: &str) {
        if name.starts_with("param_groups.") {
            let _ = self.load_number(name, f64::NAN); // fails for an unknown name
        }
        let parts = name.strip_prefix("state.").and_then(|rest| rest.split_once('.'));
        if let Some((param, part)) = parts {
            if let Ok(param) = param.parse() {
                let _ = self.set_state(param, part, None); // fails for an unknown name
            }
        }
    }
}

/// Makes a scheduler that multiplies the initial learning rates by the factor that a closure
/// computes from the epoch. [`Optimizer::lr_lambda`] also tells it the group.
///
/// ```
/// let sgd = tt::optim::sgd_with(tt::nn::linear(2, 1)?.parameters()?, Default::default())?;
/// sgd.set_lr(1.0)?;
/// let schedule = tt::lr::lambda(&sgd, |epoch| 0.5f64.powi(epoch as i32))?;
/// schedule.step()?;
/// assert_eq!(sgd.lr()?, 0.5);
/// # Ok::<(), tt::Error>(())
/// ```
#[doc(alias = "LambdaLR")]
pub fn lambda(opt: &Optimizer, f: impl Fn(i64) -> f64 + Send + 'static) -> Result<Scheduler> {
    opt.lr_lambda(move |epoch, _| Ok(f(epoch)), -1)
}
/// Makes a scheduler that multiplies the present learning rates, from epoch 1 on, by the factor
/// that a closure computes from the epoch. [`Optimizer::lr_multiplicative`] also tells it the
/// group.
#[doc(alias = "MultiplicativeLR")]
pub fn multiplicative(
    opt: &Optimizer,
    f: impl Fn(i64) -> f64 + Send + 'static,
) -> Result<Scheduler> {
    opt.lr_multiplicative(move |epoch, _| Ok(f(epoch)), -1)
}

/// # State
impl Scheduler {
    /// Returns the whole state: numbers by name, as 0-dimensional float64 tensors.
    pub fn state_dict(&self) -> Result<StateDict> {
        let mut state = StateDict::new()?;
        insert_numbers(&mut state, self.num_numbers(), |i| self.number_at(i))?;
        Ok(state)
    }
    /// Loads a state that [`state_dict`](Scheduler::state_dict) returned: the whole state, or
    /// nothing if an entry does not fit.
    pub fn load_state_dict(&self, state: &StateDict) -> Result<()> {
        let before = self.state_dict()?;
        let load = |state: &StateDict| -> Result<()> {
            state.iter().try_for_each(|(name, value)| self.load_number(&name, value.item()?))
        };
        let loaded = load(state);
        if loaded.is_err() {
            load(&before)?;
        }
        loaded
    }
}

fn insert_numbers(
    state: &mut StateDict,
    n: i64,
    number_at: impl Fn(i64) -> Result<(String, f64)>,
) -> Result<()> {
    for i in 0..n {
        let (name, value) = number_at(i)?;
        state.insert(&name, &Tensor::from_slice(&[value], &[])?)?;
    }
    Ok(())
}
