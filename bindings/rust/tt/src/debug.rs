//! `Debug` implementations of handles, one line each.
use crate::handle::Handle;
use crate::Loader;
use crate::Node;
use crate::Scheduler;
use crate::{Cancel, Context, Dataset, Ddp, Event, FunctionCall, Generator, GradScaler, Group};
use crate::{ModeGuard, Op, Optimizer, Runtime, Sampler, Stream, Work};
use std::fmt::{Debug, Formatter, Result};

macro_rules! opaque {
    ($($t:ident)*) => { $(
        impl Debug for $t {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.debug_struct(stringify!($t)).finish_non_exhaustive()
            }
        }
    )* };
}
opaque!(Cancel Context Ddp Event FunctionCall GradScaler Group ModeGuard Stream Work);

impl Debug for Runtime {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Runtime({:p})", self.raw())
    }
}
impl Debug for Generator {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.state() {
            Ok([seed, offset]) => {
                f.debug_struct("Generator").field("seed", &seed).field("offset", &offset).finish()
            }
            Err(_) => f.debug_struct("Generator").finish_non_exhaustive(),
        }
    }
}
impl Debug for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("Node").field(&self.name()).finish()
    }
}
impl Debug for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("Op").field(&self.schema()).finish()
    }
}
impl Debug for Optimizer {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut text = f.debug_struct("Optimizer");
        if let Ok(lr) = self.lr() {
            text.field("lr", &lr);
        }
        text.field("groups", &self.num_groups()).field("params", &self.num_params()).finish()
    }
}
impl Debug for Scheduler {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let lr = self.get_last_lr().unwrap_or_default();
        f.debug_struct("Scheduler")
            .field("last_epoch", &self.last_epoch())
            .field("last_lr", &lr)
            .finish()
    }
}
impl Debug for Dataset {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Dataset").field("size", &self.size()).finish()
    }
}
impl Debug for Sampler {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Sampler").field("state", &self.state().ok()).finish()
    }
}
impl Debug for Loader {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Loader").field("state", &self.state().ok()).finish()
    }
}
