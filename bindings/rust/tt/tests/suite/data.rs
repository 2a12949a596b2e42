//! Datasets, samplers and loaders.
use tt::{Dataset, Loader, LoaderOptions, Result, Sampler, Status, Tensor};

fn numbers(batch: &Tensor) -> Vec<f32> {
    batch.to_vec().unwrap()
}

fn epoch(loader: &Loader) -> Vec<f32> {
    loader.epoch().flat_map(|batch| numbers(&batch.unwrap()[0])).collect()
}

#[test]
fn batches_of_tensors() -> Result<()> {
    let rows = super::floats(&(0..23).map(|i| i as f32).collect::<Vec<_>>());
    let all = Dataset::of_tensors([&rows, &rows])?;
    let data = Dataset::concat([&all.subset(&[5, 3])?, &all])?;
    assert_eq!((data.size(), numbers(&data.get(1)?[0])), (Some(25), vec![3.0]));
    assert_eq!(data.get(25).unwrap_err().status, Status::Index);
    for workers in 0..3 {
        let options = LoaderOptions { batch_size: 4, workers, ..Default::default() };
        let loader = Loader::new(&all, Some(&Sampler::random(23, 1)?), options)?;
        let first = epoch(&loader);
        let state = loader.state()?;
        let (second, mut sorted) = (epoch(&loader), first.clone());
        sorted.sort_by(f32::total_cmp);
        assert_eq!(sorted, numbers(&rows));
        assert_ne!(first, second);
        loader.set_state(state)?;
        assert_eq!(epoch(&loader), second);
        assert_eq!(loader.epoch_length(), Some(6));
    }
    Ok(())
}

#[test]
fn batches_of_closures() -> Result<()> {
    let sample = |i: i64| match i {
        9 => Err(tt::Error::new(Status::InvalidArg, "nine")),
        _ => Ok(vec![super::floats(&[i as f32])]),
    };
    let options = LoaderOptions { batch_size: 2, workers: 2, ..Default::default() };
    let loader = Loader::new(&Dataset::map(12, sample)?, None, options)?;
    let batches: Vec<_> = loader.epoch().map(|b| b.map(|b| numbers(&b[0]))).collect();
    assert_eq!(batches.len(), 6);
    assert_eq!(batches[3].as_ref().unwrap(), &[6.0, 7.0]);
    let failed = batches[4].as_ref().unwrap_err();
    assert_eq!(failed.status, Status::Callback);
    let cause = failed.cause.as_ref().expect("the worker's error");
    assert_eq!((cause.status, cause.message.as_str()), (Status::InvalidArg, "nine"));
    assert_eq!(batches[5].as_ref().unwrap(), &[10.0, 11.0]);
    let stream =
        Dataset::stream(|i| Ok((i < 5).then(|| super::floats(&[i as f32])).into_iter().collect()))?;
    assert_eq!(stream.size(), None);
    assert_eq!(epoch(&Loader::new(&stream, None, options)?), [0.0, 1.0, 2.0, 3.0, 4.0]);
    Ok(())
}

#[test]
fn samplers() -> Result<()> {
    assert_eq!(Sampler::sequential(3)?.next_indices(5)?, [0, 1, 2]);
    assert_eq!(Sampler::weighted(&[0.0, 2.0], 3, true, 0)?.next_indices(5)?, [1, 1, 1]);
    let sampler = Sampler::random_with(4, true, 10, 0)?;
    sampler.next_indices(4)?;
    let state = sampler.state()?;
    let rest = sampler.next_indices(10)?;
    assert_eq!((sampler.epoch_length(), state.position, rest.len()), (10, 4, 6));
    sampler.set_state(state)?;
    assert_eq!(sampler.next_indices(10)?, rest);
    let mut chosen = Sampler::subset(&[7, 1], true, 0)?.next_indices(2)?;
    chosen.sort();
    assert_eq!(chosen, [1, 7]);
    let shared = |rank, drop_last| Sampler::distributed(5, rank, 2, false, drop_last, 0);
    assert_eq!(shared(1, false)?.next_indices(9)?, [1, 3, 0]);
    assert_eq!(shared(1, true)?.next_indices(9)?, [1, 3]);
    assert!(shared(2, false).is_err());
    Ok(())
}

#[test]
fn loaders_shuffle() -> Result<()> {
    let data = Dataset::of_tensors([Tensor::from((0..20).collect::<Vec<i64>>())])?;
    let options = LoaderOptions { batch_size: 20, shuffle: true, seed: 3, ..Default::default() };
    let loader = Loader::new(&data, None, options)?;
    let order = |loader: &Loader| loader.next_batch()?.unwrap()[0].to_vec::<i64>();
    let (first, end) = (order(&loader)?, loader.next_batch()?);
    let second = order(&loader)?;
    assert!(end.is_none() && first != second);
    assert_eq!(first, order(&Loader::new(&data, Some(&Sampler::random(20, 3)?), plain(20))?)?);
    let mut sorted = second;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..20).collect::<Vec<_>>());
    let sampler = Sampler::sequential(20)?;
    assert!(Loader::new(&data, Some(&sampler), options).is_err());
    assert!(Loader::new(&Dataset::stream(|_| Ok(vec![]))?, None, options).is_err());
    Ok(())
}

fn plain(batch_size: i64) -> LoaderOptions {
    LoaderOptions { batch_size, ..Default::default() }
}
