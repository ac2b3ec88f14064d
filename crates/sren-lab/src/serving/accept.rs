//! Connections: accepted until the service stops, with a bound on their number and on the time to send
//! headers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::ServiceExt;

/// Most connections at a time. Further ones wait in the system's backlog.
const CONNECTIONS: usize = 512;
/// Longest time for the headers of a request, and between requests of a connection, if requests may
/// take as long.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest headers of a request, in bytes.
const MAX_HEADERS: usize = 16 << 10;
/// Pause after the system could not accept a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves connections until `stop`, then answers what has begun, for at most `timeout`.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()>,
    timeout: Duration,
) {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT.min(timeout))
        .max_buf_size(MAX_HEADERS);
    let serve = |stream, client, graceful: &GracefulShutdown, permit| {
        serve((stream, client), router.clone(), (&protocol, graceful), permit);
    };
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await;
            (permit, listener.accept().await)
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            (permit, accepted) = next => match (permit, accepted) {
                (Ok(permit), Ok((stream, client))) => {
                    serve(stream, client, &graceful, permit);
                }
                (_, Err(error)) => {
                    tracing::warn!("a connection could not be accepted: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
                (Err(_), _) => break,
            },
        }
    }
    // Those that were connected before the signal have begun, too.
    while let Ok(permit) = room.clone().try_acquire_owned() {
        match tokio::time::timeout(Duration::ZERO, listener.accept()).await {
            Ok(Ok((stream, client))) => serve(stream, client, &graceful, permit),
            _ => break,
        }
    }
    drop(listener);
    if tokio::time::timeout(timeout, graceful.shutdown()).await.is_err() {
        tracing::warn!("stopped while clients were still sending");
    }
}

/// Answers the requests of one connection in a task of its own.
fn serve(
    (stream, client): (TcpStream, SocketAddr),
    router: Router,
    (protocol, graceful): (&http1::Builder, &GracefulShutdown),
    permit: OwnedSemaphorePermit,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("{client}: {error}");
    }
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(client));
        let router = router.clone();
        async move {
            let answer: Result<_, Infallible> =
                router.oneshot(request.map(axum::body::Body::new)).await;
            answer
        }
    });
    let connection = protocol.serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        // Clients may leave at any time.
        if let Err(error) = connection.await {
            tracing::debug!("{client}: {error}");
        }
        drop(permit);
    });
}
