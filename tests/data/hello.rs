// SPDX-License-Identifier: Apache-2.0
use std::thread;

fn main() {
    let workers: Vec<_> = (0..4).map(|n| thread::spawn(move || n)).collect();
    let n = workers.into_iter().filter_map(|w| w.join().ok()).count();
    println!("hello from {} threads", n);
}
