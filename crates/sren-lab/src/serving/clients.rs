//! The share of the queue that one client may fill, so that one that sends without end does not keep
//! out all others.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Images of each client in the queue.
#[derive(Debug, Clone)]
pub(super) struct Clients {
    most: usize,
    images: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// Images of one client; they are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Share {
    clients: Clients,
    client: IpAddr,
    images: usize,
}

impl Clients {
    /// Every client may have `most` images in the queue.
    pub(super) fn new(most: usize) -> Self {
        Self { most, images: Arc::default() }
    }

    /// A share of `images` more for `client`; `None` if that would be too many.
    pub(super) fn share(&self, client: IpAddr, images: usize) -> Option<Share> {
        let mut all = self.lock();
        let own = all.get(&client).copied().unwrap_or(0);
        if own + images > self.most {
            return None;
        }
        all.insert(client, own + images);
        Some(Share { clients: self.clone(), client, images })
    }

    /// Counts stay valid if a thread panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.images.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut all = self.clients.lock();
        if let Some(own) = all.get_mut(&self.client) {
            *own = own.saturating_sub(self.images);
            if *own == 0 {
                all.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_bounded_and_given_back() {
        let [one, other] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse::<IpAddr>().unwrap());
        let clients = Clients::new(3);
        let share = clients.share(one, 2).unwrap();
        assert!(clients.share(one, 2).is_none());
        assert!(clients.share(other, 3).is_some());
        let last = clients.share(one, 1).unwrap();
        drop(share);
        assert!(clients.share(one, 2).is_some());
        drop(last);
        assert!(clients.lock().is_empty());
    }
}
