//! A model as an HTTP service, and a page where people see equivariance happen.
//!
//! ```text
//! connections -> router -> upload -> queue -> batches on the pool -> answers
//! ```
//! The asynchronous threads read, write and wait. Everything else (decoding, networks, encoding of
//! pictures) is computed in batches on a pool of its own. Uploads stay in memory.

mod accept;
mod clients;
mod error;
mod features;
mod metrics;
mod model;
mod networks;
mod observe;
mod openapi;
mod page;
mod poses;
mod predict;
mod queue;
mod router;
mod upload;
mod work;

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;

pub use networks::Networks;

use crate::error::{LabError, Result};
use router::App;

/// Threads that read and write. They never compute, so that few are enough.
const CONNECTION_THREADS: usize = 2;
/// How often the flag is read that ends the service.
const STOP_POLL: Duration = Duration::from_millis(20);

/// Where a model is served, and what a request may take.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 takes any free one.
    pub port: u16,
    /// Threads that compute; 0 for one per core.
    pub threads: usize,
    /// Largest body of a request, in bytes.
    pub max_body: usize,
    /// Most images that wait or are computed.
    pub queue: usize,
    /// Longest time from a request's headers to its answer.
    pub timeout: Duration,
}

/// A service that listens, and answers once it [runs](Self::run).
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    timeout: Duration,
}

impl Server {
    /// Binds the address and prepares the networks. Returns an error if the address is taken.
    pub fn bind(networks: Networks, options: &ServeOptions) -> Result<Self> {
        let wanted = SocketAddr::new(options.host, options.port);
        let unusable = |error: std::io::Error| {
            LabError::invalid(
                wanted.to_string(),
                "a free address of this machine",
                error.to_string(),
            )
        };
        let listener = TcpListener::bind(wanted).map_err(unusable)?;
        listener.set_nonblocking(true).map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let router = router::router(Arc::new(App::new(networks, options)?));
        Ok(Self { listener, address, router, timeout: options.timeout })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until `stop` is set. Then no connection is accepted any more, and requests that
    /// have begun are answered.
    pub fn run(self, stop: &'static AtomicBool) -> Result<()> {
        let fail = |error: std::io::Error| {
            LabError::invalid("serve", "threads and a listening socket", error.to_string())
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(CONNECTION_THREADS)
            .thread_name("connections")
            .enable_all()
            .build()
            .map_err(fail)?;
        let stopped = async move {
            while !stop.load(Ordering::Relaxed) {
                tokio::time::sleep(STOP_POLL).await;
            }
        };
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(fail)?;
            accept::accept(listener, self.router, stopped, self.timeout).await;
            Ok(())
        })
    }
}
