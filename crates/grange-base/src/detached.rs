//! Work that does not stop when whoever waits for it leaves.

/// Begins `work` at once in a task of its own, and waits for it: a request that is cut off, or a time that is over, drops
/// the waiting and not the work. `None` when the runtime is shut down; a panic goes on as a panic.
///
/// Not an `async fn`, so that whoever waits holds a handle and not the whole of the work.
pub fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = Option<T>> {
    let task = tokio::spawn(work);
    async move {
        match task.await {
            Ok(out) => Some(out),
            Err(ended) => match ended.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn work_goes_on_when_nobody_waits() {
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let mut waiting = Box::pin(to_its_end(async move {
            gone.await.unwrap();
            tell.send(7).unwrap();
        }));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(waiting);
        go.send(()).unwrap();
        assert_eq!(told.await, Ok(7));
        assert_eq!(to_its_end(async { 8 }).await, Some(8));
    }

    #[tokio::test]
    #[should_panic(expected = "as it was")]
    async fn a_panic_goes_on() {
        to_its_end(async { panic!("as it was") }).await;
    }
}
