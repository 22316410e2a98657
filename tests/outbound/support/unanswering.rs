//! Ports that take no connection.

use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// A port that nobody listens on.
pub async fn vacant() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// A listener whose queue is full: the kernel drops further SYNs, as a silent host would.
pub struct Unanswering {
    full: TcpListener,
    _queued: Vec<TcpStream>,
}

impl Unanswering {
    pub async fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let full = socket.listen(1).unwrap();
        let address = full.local_addr().unwrap();
        let mut queued = Vec::new();
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(100), TcpStream::connect(address)).await {
            queued.push(stream);
        }
        Self { full, _queued: queued }
    }

    pub fn port(&self) -> u16 {
        self.full.local_addr().unwrap().port()
    }
}
