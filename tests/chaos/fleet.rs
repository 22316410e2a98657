//! The replicas: places, in each of which one process runs at a time, under a number that is new at each start.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::processes::{Signal, again, send};
use crate::proxy::Proxy;
use crate::replica::{ORDERS, Orders};

struct Place {
    process: Option<Child>,
    replica: u32,
}

pub struct Fleet {
    test: &'static str,
    roots: PathBuf,
    folder: PathBuf,
    clock: Clock,
    pub proxies: Vec<Proxy>,
    places: Vec<Mutex<Place>>,
    started: AtomicU32,
}

impl Fleet {
    /// Starts a replica behind each proxy, by running `test` again.
    pub async fn start(test: &'static str, roots: PathBuf, folder: PathBuf, clock: Clock, proxies: Vec<Proxy>) -> Self {
        let places = proxies.iter().map(|_| Mutex::new(Place { process: None, replica: 0 })).collect();
        let fleet = Self { test, roots, folder, clock, proxies, places, started: AtomicU32::new(0) };
        fleet.mend().await;
        fleet
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Processes started so far; numbers count from 1.
    pub fn started(&self) -> u32 {
        self.started.load(Ordering::SeqCst)
    }

    /// Half of the places are watched.
    pub const fn is_watched(place: usize) -> bool {
        place % 2 == 1
    }

    pub fn log(&self, replica: u32) -> PathBuf {
        self.folder.join(format!("replica-{replica}.jsonl"))
    }

    /// Starts again what has ended, and says which had ended by themselves, and how.
    pub async fn mend(&self) -> Vec<(u32, ExitStatus)> {
        let mut ended = Vec::new();
        for (index, place) in self.places.iter().enumerate() {
            let mut place = place.lock().await;
            let status = place.process.as_mut().and_then(|process| process.try_wait().unwrap());
            if let Some(status) = status {
                ended.push((place.replica, status));
                place.process = None;
            }
            if place.process.is_none() {
                self.start_in(index, &mut place);
            }
        }
        ended
    }

    fn start_in(&self, index: usize, place: &mut Place) {
        place.replica = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let orders = Orders {
            replica: place.replica,
            database: self.proxies[index].url(),
            roots: self.roots.clone(),
            log: self.log(place.replica),
            watched: Self::is_watched(index),
            clock: self.clock,
        };
        let orders = serde_json::to_string(&orders).unwrap();
        place.process = Some(again(self.test, &[(ORDERS, &orders)], &self.folder.join("replicas.log")));
    }

    pub async fn replica(&self, index: usize) -> u32 {
        self.places[index].lock().await.replica
    }

    /// SIGKILL; the next [`Fleet::mend`] starts another.
    pub async fn kill(&self, index: usize) -> u32 {
        let mut place = self.places[index].lock().await;
        if let Some(mut process) = place.process.take() {
            _ = process.start_kill();
            _ = process.wait().await;
        }
        place.replica
    }

    /// Signals the process of that number, if it still runs.
    pub async fn signal(&self, index: usize, replica: u32, signal: Signal) {
        let place = self.places[index].lock().await;
        if place.replica == replica
            && let Some(pid) = place.process.as_ref().and_then(Child::id)
        {
            send(pid, signal);
        }
    }

    /// Orders one actor to be killed; says in which replica, where it was heard.
    pub async fn kill_actor(&self, index: usize, child: &str) -> Option<u32> {
        let mut place = self.places[index].lock().await;
        let replica = place.replica;
        let input = place.process.as_mut()?.stdin.as_mut()?;
        input.write_all(format!("{child}\n").as_bytes()).await.ok()?;
        Some(replica)
    }
}
