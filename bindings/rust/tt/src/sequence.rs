//! Padded and packed sequences of different lengths, as torch.nn.utils.rnn has them.
use crate::error::{Error, Result};
use crate::opts::FlattenOpts;
use crate::{Status, Tensor};

/// Sequences of different lengths without padding: the first elements of all, then the second ones,
/// and so on, with longer sequences first. Recurrent layers take `data` as their input and
/// `batch_sizes` as their fourth one.
///
/// ```
/// let input = tt::randn(&[3, 5, 4])?; // batch first: 3 sequences of at most 5 elements
/// let packed = tt::pack_padded_sequence(&input, &[2, 5, 3], true)?;
/// let lstm = tt::nn::lstm(4, 6)?;
/// let (x, sizes) = (&packed.data, &packed.batch_sizes);
/// let output = lstm.forward_opt(&[Some(x), None, None, Some(sizes)])?;
/// let packed = tt::PackedSequence { data: output[0].clone(), ..packed };
/// let (padded, lengths) = tt::pad_packed_sequence(&packed, true, 0.0)?;
/// assert_eq!((padded.shape(), lengths), (&[3, 5, 6][..], vec![2, 5, 3]));
/// # Ok::<(), tt::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackedSequence {
    /// The elements, of shape (rows, *).
    pub data: Tensor,
    /// The number of sequences with an element at each step, int64.
    pub batch_sizes: Tensor,
    /// The numbers of the sequences in the order of `data`.
    pub sorted_indices: Vec<usize>,
}

fn wrong(message: String) -> Error {
    Error::new(Status::InvalidArg, message)
}
/// Merges the first two dimensions.
fn rows_of(t: &Tensor) -> Result<Tensor> {
    t.flatten_with(FlattenOpts::new().start_dim(0).end_dim(1))
}

/// Packs padded sequences (T, N, *), or (N, T, *) if `batch_first`, of these lengths. They may have
/// any order.
pub fn pack_padded_sequence(
    input: &Tensor,
    lengths: &[i64],
    batch_first: bool,
) -> Result<PackedSequence> {
    let shape = input.shape().to_vec();
    let (n, longest) = match (&shape[..], batch_first) {
        ([n, t, ..], true) | ([t, n, ..], false) => (*n, *t),
        _ => return Err(wrong(format!("input is {:?}: must have 2 dimensions or more", shape))),
    };
    if lengths.is_empty() || lengths.len() as i64 != n {
        return Err(wrong(format!("{} lengths for {} sequences", lengths.len(), n)));
    }
    if lengths.iter().any(|l| !(1..=longest).contains(l)) {
        return Err(wrong(format!("lengths is {:?}: must be in [1, {}]", lengths, longest)));
    }
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|i| -lengths[*i]);
    let (mut places, mut sizes) = (vec![], vec![]);
    for step in 0..lengths[order[0]] {
        let before = places.len();
        for i in order.iter().filter(|i| lengths[**i] > step) {
            let i = *i as i64;
            places.push(if batch_first { i * longest + step } else { step * n + i });
        }
        sizes.push((places.len() - before) as i64);
    }
    let data = rows_of(input)?.index_select(0, &Tensor::from(places).to_device(input.device())?)?;
    Ok(PackedSequence { data, batch_sizes: Tensor::from(sizes), sorted_indices: order })
}

/// Returns the padded sequences (T, N, *), or (N, T, *) if `batch_first`, in their own order, and
/// their lengths.
pub fn pad_packed_sequence(
    sequence: &PackedSequence,
    batch_first: bool,
    padding_value: f64,
) -> Result<(Tensor, Vec<i64>)> {
    let (data, order) = (&sequence.data, &sequence.sorted_indices);
    let sizes = sequence.batch_sizes.to_vec::<i64>()?;
    let (n, longest) = (order.len(), sizes.len());
    let rows = data.shape().first().copied().unwrap_or(0);
    let fits = sizes.first() == Some(&(n as i64)) && sizes.windows(2).all(|w| w[0] >= w[1]);
    if !fits || sizes.iter().sum::<i64>() != rows || sizes[longest - 1] < 1 {
        return Err(wrong(format!("batch_sizes {:?}: do not fit {} rows", sizes, rows)));
    }
    let mut lengths = vec![0; n];
    let mut places = vec![rows; n * longest]; // the row behind the data is padding
    let mut row = 0;
    for (step, size) in sizes.iter().enumerate() {
        for i in &order[..*size as usize] {
            places[if batch_first { i * longest + step } else { step * n + i }] = row;
            lengths[*i] += 1;
            row += 1;
        }
    }
    let padding = data.narrow(0, 0, 1)?.full_like(padding_value)?;
    let rows = crate::cat(&[data, &padding])?;
    let places = Tensor::from(places).to_device(data.device())?;
    let (n, longest) = (n as i64, longest as i64);
    let mut shape = if batch_first { vec![n, longest] } else { vec![longest, n] };
    shape.extend_from_slice(&data.shape()[1..]);
    Ok((rows.index_select(0, &places)?.reshape(&shape)?, lengths))
}

/// Packs sequences (L, *), in any order.
///
/// ```
/// let packed = tt::pack_sequence(&[tt::ones(&[2, 4])?, tt::zeros(&[3, 4])?])?;
/// assert_eq!(packed.batch_sizes.to_vec::<i64>()?, [2, 2, 1]);
/// let sequences = tt::unpack_sequence(&packed)?;
/// assert!(sequences[0].equal(&tt::ones(&[2, 4])?)? && sequences[1].shape() == [3, 4]);
/// # Ok::<(), tt::Error>(())
/// ```
pub fn pack_sequence(sequences: &[Tensor]) -> Result<PackedSequence> {
    let padded = pad_sequence(sequences, true, 0.0)?;
    let lengths: Vec<i64> = sequences.iter().map(|t| t.shape()[0]).collect();
    pack_padded_sequence(&padded, &lengths, true)
}

/// Returns the sequences (L, *) that [`pack_sequence`] has packed.
pub fn unpack_sequence(sequence: &PackedSequence) -> Result<Vec<Tensor>> {
    let (padded, lengths) = pad_packed_sequence(sequence, true, 0.0)?;
    unpad_sequence(&padded, &lengths, true)
}

/// Returns sequences (L, *) of these lengths without the padding behind them: the inverse of
/// [`pad_sequence`].
pub fn unpad_sequence(padded: &Tensor, lengths: &[i64], batch_first: bool) -> Result<Vec<Tensor>> {
    let dim = if batch_first { 0 } else { 1 };
    let row = |(i, length): (usize, &i64)| padded.select(dim, i as i64)?.narrow(0, 0, *length);
    lengths.iter().enumerate().map(|item| row(item)?.copy()).collect()
}

/// Pads sequences (L, *) to the longest one and stacks them: (T, N, *), or (N, T, *) if
/// `batch_first`.
pub fn pad_sequence(sequences: &[Tensor], batch_first: bool, padding_value: f64) -> Result<Tensor> {
    let of = |t: &Tensor| crate::opts::FullOpts::new().dtype(t.dtype()).device(t.device());
    let length = |t: &Tensor| t.shape().first().copied().unwrap_or(0);
    let longest = sequences.iter().map(length).max().unwrap_or(0);
    let padded = sequences
        .iter()
        .map(|t| {
            let mut shape = t.shape().to_vec();
            if shape.is_empty() {
                return Err(wrong("a sequence has no dimension".into()));
            }
            shape[0] = longest - shape[0];
            crate::cat(&[t, &crate::full_with(&shape, padding_value, of(t))?])
        })
        .collect::<Result<Vec<_>>>()?;
    let opts = crate::opts::StackOpts::new().dim(if batch_first { 0 } else { 1 });
    crate::stack_with(&padded, opts)
}
