//! Datasets, samplers and loaders.
use crate::callback::{drop_user, user};
use crate::error::{Error, Result};
use crate::generated::callbacks;
use crate::handle::*;
use crate::{Dataset, Loader, Sampler, Status, Tensor};
use std::os::raw::c_void;
use tt_sys as sys;

type DropFn = Option<unsafe extern "C" fn(*mut c_void)>;

/// Passes a function of samples to `run` in the form that C takes.
fn with_samples<R>(
    f: impl Fn(i64) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    run: impl FnOnce(sys::tt_sample_fn, *mut c_void, DropFn) -> R,
) -> R {
    fn go<T: Fn(i64) -> Result<Vec<Option<Tensor>>>, R>(
        f: T,
        run: impl FnOnce(sys::tt_sample_fn, *mut c_void, DropFn) -> R,
    ) -> R {
        run(Some(callbacks::tt_sample_fn::<T>), user(f), Some(drop_user::<T>))
    }
    go(move |i| Ok(f(i)?.into_iter().map(Some).collect()), run)
}

impl Dataset {
    /// Returns a dataset whose sample i is row i of each tensor.
    pub fn of_tensors<T: AsRef<Tensor>>(tensors: impl IntoIterator<Item = T>) -> Result<Dataset> {
        let items = raw_items(tensors);
        let n = items.len() as i64;
        // SAFETY: the list is valid during the call.
        unsafe { call1(|c, out| sys::tt_dataset_tensors(c, items.as_ptr() as *const _, n, out)) }
    }

    /// Returns a dataset whose samples f computes; workers call f on their threads.
    ///
    /// ```
    /// use tt::{Dataset, Loader, LoaderOptions, Tensor};
    /// let squares = Dataset::map(10, |i| Ok(vec![Tensor::from(i), Tensor::from(i * i)]))?;
    /// let options = LoaderOptions { batch_size: 4, workers: 2, ..Default::default() };
    /// for batch in Loader::new(&squares, None, options)?.epoch() {
    ///     let batch = batch?;
    ///     assert_eq!((&batch[0] * &batch[0]).to_vec::<i64>()?, batch[1].to_vec::<i64>()?);
    /// }
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn map<F>(size: i64, f: F) -> Result<Dataset>
    where
        F: Fn(i64) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    {
        with_samples(f, |entry, user, drop| {
            // SAFETY: tt takes ownership of the function and drops it.
            unsafe { call1(|c, out| sys::tt_dataset_map(c, size, entry, user, drop, out)) }
        })
    }

    /// Returns a dataset that calls f for each successive sample, until f returns no tensors.
    pub fn stream<F>(f: F) -> Result<Dataset>
    where
        F: Fn(i64) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    {
        with_samples(f, |entry, user, drop| {
            // SAFETY: tt takes ownership of the function and drops it.
            unsafe { call1(|c, out| sys::tt_dataset_stream(c, entry, user, drop, out)) }
        })
    }

    /// Returns the concatenation of several datasets.
    pub fn concat<'a>(datasets: impl IntoIterator<Item = &'a Dataset>) -> Result<Dataset> {
        let list: Vec<*const sys::tt_dataset> =
            datasets.into_iter().map(|d| d.raw() as *const _).collect();
        let n = list.len() as i64;
        // SAFETY: the list is valid during the call.
        unsafe { call1(|c, out| sys::tt_dataset_concat(c, list.as_ptr(), n, out)) }
    }

    /// Returns a dataset of the samples at the given indices.
    pub fn subset(&self, indices: &[i64]) -> Result<Dataset> {
        let n = indices.len() as i64;
        // SAFETY: the list is valid during the call.
        unsafe { call1(|c, out| sys::tt_dataset_subset(c, self.raw(), indices.as_ptr(), n, out)) }
    }

    /// Splits the samples into random subsets of the given lengths, which do not overlap and whose
    /// sum must be the number of samples. This thread's generator draws the order.
    ///
    /// ```
    /// let data = tt::Dataset::of_tensors([tt::rand(&[10, 2])?])?;
    /// let parts = data.random_split(&[7, 3])?;
    /// assert_eq!((parts[0].size(), parts[1].size()), (Some(7), Some(3)));
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn random_split(&self, lengths: &[i64]) -> Result<Vec<Dataset>> {
        let wrong = |rule: String| {
            let why = format!("random_split: lengths is {:?}: {}", lengths, rule);
            Error::new(Status::InvalidArg, why)
        };
        let stream = || wrong("the dataset is a stream, whose length is unknown".into());
        let total = self.size().ok_or_else(stream)?;
        let sum = lengths.iter().try_fold(0i64, |sum, n| sum.checked_add(*n));
        if lengths.iter().any(|n| *n < 0) || sum != Some(total) {
            return Err(wrong(format!("the sum must be {}, the number of samples", total)));
        }
        let order = crate::randperm(total)?.to_vec::<i64>()?;
        let mut rest = &order[..];
        let mut part = |n: &i64| {
            let (first, later) = rest.split_at(*n as usize);
            rest = later;
            self.subset(first)
        };
        lengths.iter().map(&mut part).collect()
    }

    /// As [`random_split`](Dataset::random_split), by fractions of the samples with the sum 1.
    /// Numbers of samples are rounded down, and the samples that remain are distributed in turn.
    pub fn random_split_by(&self, fractions: &[f64]) -> Result<Vec<Dataset>> {
        let sum = fractions.iter().sum::<f64>();
        if fractions.iter().any(|f| !(0.0..=1.0).contains(f)) || (sum - 1.0).abs() > 1e-9 {
            let why = format!("random_split_by: fractions is {:?}: the sum must be 1", fractions);
            return Err(Error::new(Status::InvalidArg, why));
        }
        let total = self.size().unwrap_or(0);
        let floor = |f: &f64| (total as f64 * f).floor() as i64;
        let mut lengths: Vec<i64> = fractions.iter().map(floor).collect();
        let n = lengths.len();
        for i in 0..(total - lengths.iter().sum::<i64>()).max(0) as usize {
            lengths[i % n] += 1;
        }
        self.random_split(&lengths)
    }

    /// Returns the number of samples; None for a stream, whose length is unknown.
    pub fn size(&self) -> Option<i64> {
        // SAFETY: the handle is live.
        Some(unsafe { sys::tt_dataset_size(self.raw()) }).filter(|n| *n >= 0)
    }

    /// Returns a sample.
    pub fn get(&self, index: i64) -> Result<Vec<Tensor>> {
        // SAFETY: the handle is live.
        unsafe {
            call_list(|c, outs, cap, n| sys::tt_dataset_get(c, self.raw(), index, outs, cap, n))
        }
    }
}

/// The position of a [`Sampler`] or a [`Loader`], to resume from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OrderState {
    /// The seed, which determines the order of each epoch.
    pub seed: i64,
    /// The number of epochs before this one.
    pub epoch: i64,
    /// The number of indices of this epoch that have been returned.
    pub position: i64,
}

impl OrderState {
    fn raw(&self) -> [i64; 3] {
        [self.seed, self.epoch, self.position]
    }

    fn of_raw([seed, epoch, position]: [i64; 3]) -> OrderState {
        OrderState { seed, epoch, position }
    }
}

impl Sampler {
    /// Returns a sampler of the indices 0 … n - 1.
    pub fn sequential(n: i64) -> Result<Sampler> {
        // SAFETY: takes numbers.
        unsafe { call1(|c, out| sys::tt_sampler_sequential(c, n, out)) }
    }

    /// Returns a sampler whose epochs are permutations of 0 … n - 1.
    pub fn random(n: i64, seed: i64) -> Result<Sampler> {
        Sampler::random_with(n, false, -1, seed)
    }

    /// Returns a sampler of num_samples random indices below n; -1 means n samples.
    pub fn random_with(n: i64, replacement: bool, num_samples: i64, seed: i64) -> Result<Sampler> {
        let replacement = replacement as i32;
        // SAFETY: takes numbers.
        unsafe { call1(|c, out| sys::tt_sampler_random(c, n, replacement, num_samples, seed, out)) }
    }

    /// Returns a sampler that draws num_samples indices per epoch according to weights.
    pub fn weighted(
        weights: &[f64],
        num_samples: i64,
        replacement: bool,
        seed: i64,
    ) -> Result<Sampler> {
        let (w, n, replacement) = (weights.as_ptr(), weights.len() as i64, replacement as i32);
        // SAFETY: the list is valid during the call.
        unsafe {
            call1(|c, out| sys::tt_sampler_weighted(c, w, n, num_samples, replacement, seed, out))
        }
    }

    /// Returns a sampler of the given indices, permuted in each epoch if `shuffle` is set.
    pub fn subset(indices: &[i64], shuffle: bool, seed: i64) -> Result<Sampler> {
        let (list, n) = (indices.as_ptr(), indices.len() as i64);
        // SAFETY: the list is valid during the call.
        unsafe { call1(|c, out| sys::tt_sampler_subset(c, list, n, shuffle as i32, seed, out)) }
    }

    /// Returns the sampler of one of `size` processes: indices rank, rank + size, … of an order
    /// of 0 … n - 1 that is the same in all of them, permuted in each epoch if `shuffle` is set.
    /// All have as many: the last indices are dropped or, without `drop_last`, the first repeated.
    pub fn distributed(
        n: i64,
        rank: i32,
        size: i32,
        shuffle: bool,
        drop_last: bool,
        seed: i64,
    ) -> Result<Sampler> {
        let (shuffle, drop_last) = (shuffle as i32, drop_last as i32);
        // SAFETY: takes numbers.
        unsafe {
            call1(|c, out| {
                sys::tt_sampler_distributed(c, n, rank, size, shuffle, drop_last, seed, out)
            })
        }
    }

    /// Returns the number of indices of an epoch.
    pub fn epoch_length(&self) -> i64 {
        // SAFETY: the handle is live.
        unsafe { sys::tt_sampler_length(self.raw()) }
    }

    /// Returns the next indices, at most n. An empty list means that the epoch has ended and the
    /// next one begins.
    pub fn next_indices(&self, n: usize) -> Result<Vec<i64>> {
        let mut indices = vec![0; n];
        let mut count = 0;
        // SAFETY: the list has room for n indices.
        unsafe {
            call(|c| {
                sys::tt_sampler_next(c, self.raw(), indices.as_mut_ptr(), n as i64, &mut count)
            })?
        };
        indices.truncate(count as usize);
        Ok(indices)
    }

    /// Returns the position of the sampler.
    pub fn state(&self) -> Result<OrderState> {
        let mut raw = [0; 3];
        // SAFETY: the state has three numbers.
        unsafe { call(|c| sys::tt_sampler_state(c, self.raw(), raw.as_mut_ptr()))? };
        Ok(OrderState::of_raw(raw))
    }

    /// Sets the position of the sampler.
    pub fn set_state(&self, state: OrderState) -> Result<()> {
        let raw = state.raw();
        // SAFETY: the state has three numbers.
        unsafe { call(|c| sys::tt_sampler_set_state(c, self.raw(), raw.as_ptr())) }
    }
}

/// Options of a [`Loader`].
#[derive(Clone, Copy, Debug)]
pub struct LoaderOptions {
    /// Samples per batch.
    pub batch_size: i64,
    /// Threads that tt uses to load batches in advance; 0 loads them in `next_batch`.
    pub workers: i64,
    /// Batches prefetched per worker.
    pub prefetch: i64,
    /// Whether to drop the last batch if it is incomplete.
    pub drop_last: bool,
    /// Whether to load the samples in another random order in each epoch. A sampler has an order of
    /// its own.
    pub shuffle: bool,
    /// The seed of these orders.
    pub seed: i64,
}

impl Default for LoaderOptions {
    fn default() -> LoaderOptions {
        let (drop_last, shuffle) = (false, false);
        LoaderOptions { batch_size: 1, workers: 0, prefetch: 2, drop_last, shuffle, seed: 0 }
    }
}

impl Loader {
    /// Creates a loader. Without a sampler, it loads all samples, in order unless `shuffle` is set.
    ///
    /// ```
    /// use tt::{Dataset, Loader, LoaderOptions};
    /// let data = Dataset::of_tensors([tt::randn(&[10, 2])?])?;
    /// let options = LoaderOptions { batch_size: 4, shuffle: true, ..Default::default() };
    /// let loader = Loader::new(&data, None, options)?;
    /// assert_eq!(loader.epoch().count(), 3);
    /// # Ok::<(), tt::Error>(())
    /// ```
    pub fn new(
        dataset: &Dataset,
        sampler: Option<&Sampler>,
        options: LoaderOptions,
    ) -> Result<Loader> {
        if options.shuffle {
            let refused = |why: &str| {
                Err(Error::new(Status::InvalidArg, format!("loader: shuffle is true: {}", why)))
            };
            if sampler.is_some() {
                return refused("the sampler has an order of its own");
            }
            return match dataset.size() {
                Some(n) => {
                    let order = Sampler::random(n, options.seed)?;
                    let options = LoaderOptions { shuffle: false, ..options };
                    Loader::new(dataset, Some(&order), options)
                }
                None => refused("the dataset is a stream, which has no order"),
            };
        }
        let raw = sys::tt_loader_opts {
            set: sys::TT_LOADER_BATCH_SIZE
                | sys::TT_LOADER_WORKERS
                | sys::TT_LOADER_PREFETCH
                | sys::TT_LOADER_DROP_LAST,
            batch_size: options.batch_size,
            workers: options.workers,
            prefetch: options.prefetch,
            drop_last: options.drop_last as i32,
            pad: 0,
        };
        let sampler = sampler.map_or(std::ptr::null_mut(), |s| s.raw());
        // SAFETY: the options are valid during the call.
        unsafe { call1(|c, out| sys::tt_loader_new(c, dataset.raw(), sampler, &raw, out)) }
    }

    /// Returns the next batch; None at the end of an epoch. The next call begins another one.
    pub fn next_batch(&self) -> Result<Option<Vec<Tensor>>> {
        // SAFETY: the handle is live.
        let batch = unsafe {
            call_list(|c, outs, cap, n| sys::tt_loader_next(c, self.raw(), outs, cap, n))?
        };
        Ok(Some(batch).filter(|batch| !batch.is_empty()))
    }

    /// Iterates over the batches up to the end of the epoch.
    pub fn epoch(&self) -> Epoch<'_> {
        Epoch { loader: self }
    }

    /// Returns the number of batches per epoch; None for a stream, whose length is unknown.
    pub fn epoch_length(&self) -> Option<i64> {
        // SAFETY: the handle is live.
        Some(unsafe { sys::tt_loader_length(self.raw()) }).filter(|n| *n >= 0)
    }

    /// Returns the position after the last returned batch; prefetched batches do not count.
    pub fn state(&self) -> Result<OrderState> {
        let mut raw = [0; 3];
        // SAFETY: the state has three numbers.
        unsafe { call(|c| sys::tt_loader_state(c, self.raw(), raw.as_mut_ptr()))? };
        Ok(OrderState::of_raw(raw))
    }

    /// Resumes from the state of a loader with the same dataset, sampler and batch size.
    pub fn set_state(&self, state: OrderState) -> Result<()> {
        let raw = state.raw();
        // SAFETY: the state has three numbers.
        unsafe { call(|c| sys::tt_loader_set_state(c, self.raw(), raw.as_ptr())) }
    }
}

/// The batches of an epoch of a [`Loader`].
#[derive(Debug)]
#[must_use = "iterators are lazy"]
pub struct Epoch<'a> {
    loader: &'a Loader,
}

impl Iterator for Epoch<'_> {
    type Item = Result<Vec<Tensor>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.loader.next_batch().transpose()
    }
}
