//! Errors: tt's record of a failed call, and errors and panics of closures.
use crate::{callback, context, handle::text_of, DType, Status};
use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Mutex;
use tt_sys as sys;

/// The result of a call that may fail.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a failed call. A failed call changes nothing, unless its documentation says
/// otherwise.
///
/// ```
/// let (a, b) = (tt::zeros(&[2, 3])?, tt::zeros(&[4, 5])?);
/// let e = a.matmul(&b).unwrap_err();
/// assert_eq!((e.status, e.op.as_str()), (tt::Status::Shape, "matmul"));
/// assert_eq!(e.shapes, [vec![2, 3], vec![4, 5]]);
/// # Ok::<(), tt::Error>(())
/// ```
pub struct Error(Box<ErrorInfo>);

/// The contents of an [`Error`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ErrorInfo {
    /// The kind of error.
    pub status: Status,
    /// The operator or function that failed; "" if the error has none.
    pub op: String,
    /// The invalid argument.
    pub argument: Option<String>,
    /// Its position in the C function, not counting the ctx.
    pub argument_index: Option<usize>,
    /// The offending shapes, at most two.
    pub shapes: Vec<Vec<i64>>,
    /// The offending dtypes, at most two.
    pub dtypes: Vec<DType>,
    /// The message without the operator's name.
    pub message: String,
    /// The error of the closure that made the call fail.
    pub cause: Option<Error>,
    other: Option<Box<dyn StdError + Send + Sync>>,
    panic: Option<Mutex<Box<dyn Any + Send>>>,
}

impl std::ops::Deref for Error {
    type Target = ErrorInfo;
    fn deref(&self) -> &ErrorInfo {
        &self.0
    }
}

impl Error {
    /// Makes an application error, for closures that tt calls.
    pub fn new(status: Status, message: impl Into<String>) -> Error {
        let (message, op) = (message.into(), String::new());
        let (argument, argument_index, shapes, dtypes) = (None, None, vec![], vec![]);
        Error(Box::new(ErrorInfo {
            status,
            op,
            argument,
            argument_index,
            shapes,
            dtypes,
            message,
            cause: None,
            other: None,
            panic: None,
        }))
    }
    /// Wraps any other error, which becomes the `source`.
    pub fn other(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        let error = error.into();
        let mut e = Error::new(Status::Callback, error.to_string());
        e.0.other = Some(error);
        e
    }
    /// Returns the error of this type that [`other`](Error::other) or `?` has wrapped; None if
    /// neither this error nor its cause has one.
    ///
    /// ```
    /// use std::io;
    /// fn weights() -> tt::Result<Vec<u8>> {
    ///     Ok(std::fs::read("/nowhere")?)
    /// }
    /// let e = weights().unwrap_err();
    /// assert_eq!(e.status, tt::Status::Io);
    /// assert_eq!(e.downcast_ref::<io::Error>().unwrap().kind(), io::ErrorKind::NotFound);
    /// ```
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        let here = self.0.other.as_ref().and_then(|other| other.downcast_ref());
        here.or_else(|| self.0.cause.as_ref()?.downcast_ref())
    }
    /// Returns the message of the panic behind this error or its cause.
    pub fn panic_message(&self) -> Option<&str> {
        let here = self.0.panic.is_some().then_some(self.0.message.as_str());
        here.or_else(|| self.cause.as_ref()?.panic_message())
    }
    /// Returns the panic behind this error, for [`std::panic::resume_unwind`]; the error itself if
    /// there is none.
    pub fn into_panic(mut self) -> std::result::Result<Box<dyn Any + Send>, Error> {
        match (self.0.panic.take(), self.0.cause.take()) {
            (Some(payload), _) => Ok(payload.into_inner().unwrap_or_else(|e| e.into_inner())),
            (None, Some(cause)) => cause.into_panic().map_err(|cause| {
                self.0.cause = Some(cause);
                self
            }),
            (None, None) => Err(self),
        }
    }

    pub(crate) fn from_panic(payload: Box<dyn Any + Send>) -> Error {
        let text = payload
            .downcast_ref::<&str>()
            .map(|s| s.to_string())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        let mut e = Error::new(
            Status::Callback,
            text.unwrap_or_else(|| "a panic without text".to_string()),
        );
        e.0.panic = Some(Mutex::new(payload));
        e
    }
    /// Returns the error of the last failed call of a ctx.
    #[cold]
    pub(crate) fn last(c: *mut sys::tt_ctx) -> Error {
        let raised = callback::take_raised();
        // SAFETY: the ctx is live or null; its record is valid until the next failure.
        let record = unsafe { sys::tt_ctx_error(c).as_ref() };
        let mut e = match record {
            // SAFETY: the strings of a record are valid as long as the record.
            Some(record) => unsafe { Error::of_record(record) },
            None => return context::startup_error(),
        };
        if raised.is_some() && matches!(e.status, Status::Callback | Status::Cancelled) {
            e.0.cause = raised;
        }
        e
    }
    /// # Safety
    /// The record's strings and its cause are valid.
    unsafe fn of_record(r: &sys::tt_error) -> Error {
        // SAFETY: guaranteed by the caller.
        let (message, op, arg, cause) =
            unsafe { (text_of(r.message), text_of(r.op), text_of(r.arg), r.cause.as_ref()) };
        let mut e = Error::new(Status::from_raw(r.code).unwrap_or(Status::Internal), message);
        e.0.op = op.into_owned();
        e.0.argument = Some(arg.into_owned()).filter(|name| !name.is_empty());
        e.0.argument_index = usize::try_from(r.arg_index).ok();
        e.0.shapes = (0..2)
            .filter(|i| r.ndim[*i] >= 0)
            .map(|i| r.shape[i][..r.ndim[i].min(8) as usize].to_vec())
            .collect();
        e.0.dtypes = r.dtype.iter().filter_map(|d| DType::from_raw(*d)).collect();
        // SAFETY: guaranteed by the caller.
        e.0.cause = cause.map(|cause| unsafe { Error::of_record(cause) });
        e
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.op.is_empty() && !self.0.message.starts_with(&self.0.op) {
            write!(f, "{}: ", self.0.op)?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.0.status, self)?;
        self.0.cause.as_ref().map_or(Ok(()), |cause| write!(f, "\n  caused by {:?}", cause))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: takes any number; the string is valid forever.
        f.pad(&unsafe { text_of(sys::tt_status_name(*self as i32)) })
    }
}

/// Wraps the error, which becomes the `source`.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        let mut e = Error::other(error);
        e.0.status = Status::Io;
        e
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match (&self.0.cause, &self.0.other) {
            (Some(cause), _) => Some(cause),
            (None, Some(other)) => Some(other.as_ref()),
            _ => None,
        }
    }
}
