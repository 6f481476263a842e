//! Work split among threads.

/// Runs `work` on every part at once; the last one on the thread that calls.
pub(crate) fn each<P: Send>(parts: impl IntoIterator<Item = P>, work: impl Fn(P) + Sync) {
    let work = &work;
    let mut parts: Vec<P> = parts.into_iter().collect();
    let Some(own) = parts.pop() else { return };
    std::thread::scope(|scope| {
        for part in parts {
            scope.spawn(move || work(part));
        }
        work(own);
    });
}

/// Runs `work` on `items`, split evenly among threads.
pub(crate) fn evenly<T: Sync>(threads: usize, items: &[T], work: impl Fn(&[T]) + Sync) {
    each(items.chunks(items.len().div_ceil(threads).max(1)), work);
}
