//! `sren serve`: a model as an HTTP service, and a page.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use sren_lab::inference::BUNDLED;
use sren_lab::interrupt_flag;
use sren_lab::serving::{Networks, ServeOptions, Server};
use tracing_subscriber::filter::LevelFilter;

use crate::Failure;
use crate::arguments::Threads;
use crate::output::{is_quiet, note, print};

/// Bytes of a megabyte.
const MEGABYTE: usize = 1_000_000;

/// Serve a model over HTTP: predictions, poses and features as an API, and a page to see equivariance.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Folder of a run, mnist-sren or mnist-cnn for a bundled network
    #[arg(default_value = BUNDLED)]
    run: PathBuf,
    /// Port to listen on; 0 takes any free one
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,
    /// Address to listen on; 0.0.0.0 or :: for all of this machine
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    #[command(flatten)]
    threads: Threads,
    /// Largest body of a request, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1000))]
    max_body: u16,
    /// Run of a plain CNN that the page shows beside the model [default: mnist-cnn for digits, otherwise
    /// the same weights without frames]
    #[arg(long, value_name = "RUN")]
    cnn: Option<PathBuf>,
    /// Most images that wait or are computed; further requests get the status 503
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: u32,
    /// Longest time for a request, in seconds
    #[arg(long, value_name = "S", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..=3600))]
    timeout: u16,
    /// Print a line for every request
    #[arg(long)]
    log: bool,
}

impl Serve {
    /// Ends with code 0 when a signal stops it: that is how a service ends.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let level = match (self.log, is_quiet()) {
            (true, _) => LevelFilter::INFO,
            (false, false) => LevelFilter::WARN,
            (false, true) => LevelFilter::ERROR,
        };
        tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
        let stop = interrupt_flag();
        let networks = Networks::open(&self.run, self.cnn.as_deref())?;
        let name = networks.name().to_string();
        let options = ServeOptions {
            host: self.host,
            port: self.port,
            threads: self.threads.count(),
            max_body: usize::from(self.max_body) * MEGABYTE,
            queue: self.queue as usize,
            timeout: Duration::from_secs(self.timeout.into()),
        };
        let server = Server::bind(networks, &options)?;
        print(&format!("serving {name} at http://{}", server.address()))?;
        server.run(stop)?;
        note("stopped");
        Ok(())
    }
}
