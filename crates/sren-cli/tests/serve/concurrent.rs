//! Many clients at once.

use std::sync::Barrier;

use crate::service::{Service, digit, predicted};

const CLIENTS: usize = 100;

/// Each gets the answer to its own image, and they are computed together.
#[test]
fn a_hundred_clients_get_their_own_answers_in_common_batches() {
    let service = Service::start(&[]);
    let expected = predicted("mnist:0-99");
    let start = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (service, start) = (&service, &start);
                scope.spawn(move || {
                    let image = digit(number);
                    start.wait();
                    service.post_png("/v1/predict?top=3", &image).good()
                })
            })
            .collect();
        for (number, client) in clients.into_iter().enumerate() {
            let answer = client.join().unwrap();
            let (found, expected) = (&answer["predictions"][0], &expected[number]);
            assert_eq!(found["class"], expected["class"], "digit {number}");
            let [found, expected] = [found, expected].map(|p| p["probability"].as_f64().unwrap());
            assert!((found - expected).abs() < 1e-4, "digit {number}: {found} {expected}");
        }
    });
    assert_eq!(service.metric("sren_batch_images_sum"), CLIENTS as f64);
    let batches = service.metric("sren_batch_images_count");
    assert!(batches <= 30.0, "{batches} batches");
    assert_eq!(service.metric("sren_queue_images"), 0.0);
}
