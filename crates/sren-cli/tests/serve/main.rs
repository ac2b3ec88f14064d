//! `sren serve` as clients use it: every route, every error, many, slow and broken clients, its end.

#![cfg(unix)]

mod broken_clients;
mod concurrent;
mod errors;
mod http;
mod mutated;
mod page_files;
mod routes;
mod security;
mod service;
mod stop;
