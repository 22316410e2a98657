//! A name server on loopback, UDP and TCP, that answers as it was told and remembers who asked.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use hickory_resolver::proto::op::{Message, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType, rdata};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

/// What is said of a name.
#[derive(Clone)]
pub enum Found {
    /// These addresses, those of the asked family.
    Addresses(Vec<IpAddr>),
    /// An alias and its addresses.
    Alias(&'static str, Vec<IpAddr>),
    /// An error; `NoError` is a name without addresses.
    Code(ResponseCode),
    /// Nothing at all.
    Silence,
}

impl Found {
    pub fn at(addresses: &[&str]) -> Self {
        Self::Addresses(addresses.iter().map(|address| address.parse().unwrap()).collect())
    }
}

type Answers = Arc<dyn Fn(&str, RecordType, usize) -> Found + Send + Sync>;

/// Stops when dropped.
pub struct Dns {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, RecordType)>>>,
    _tasks: JoinSet<()>,
}

impl Dns {
    /// Says the same of every name.
    pub async fn saying(found: Found) -> Self {
        Self::start(move |_, _, _| found.clone()).await
    }

    /// Answers with what `answers` says for a name, a type and how often the pair was asked before.
    pub async fn start(answers: impl Fn(&str, RecordType, usize) -> Found + Send + Sync + 'static) -> Self {
        let (udp, tcp) = sockets().await;
        let address = udp.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: Answers = Arc::new(answers);
        let mut tasks = JoinSet::new();
        tasks.spawn(serve_udp(udp, Arc::clone(&answers), Arc::clone(&asked)));
        tasks.spawn(serve_tcp(tcp, answers, Arc::clone(&asked)));
        Self { address, asked, _tasks: tasks }
    }

    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every question so far, in order.
    pub fn asked(&self) -> Vec<(String, RecordType)> {
        self.asked.lock().unwrap().clone()
    }

    /// How often this type was asked for.
    pub fn count(&self, kind: RecordType) -> usize {
        self.asked().iter().filter(|(_, asked)| *asked == kind).count()
    }
}

/// The same port for both, which a neighbour may have taken for one of them.
async fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
            return (udp, tcp);
        }
    }
}

async fn serve_udp(socket: UdpSocket, answers: Answers, asked: Arc<Mutex<Vec<(String, RecordType)>>>) {
    let mut buffer = [0; 4096];
    loop {
        let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
        let Some(answer) = answer(&buffer[..length], &answers, &asked) else { continue };
        let bytes = answer.to_vec().unwrap();
        let fits = if bytes.len() <= 1232 { bytes } else { answer.truncate().to_vec().unwrap() };
        socket.send_to(&fits, from).await.unwrap();
    }
}

async fn serve_tcp(listener: TcpListener, answers: Answers, asked: Arc<Mutex<Vec<(String, RecordType)>>>) {
    let mut serving = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (answers, asked) = (Arc::clone(&answers), Arc::clone(&asked));
        serving.spawn(async move {
            let _ = serve_stream(stream, &answers, &asked).await;
        });
    }
}

async fn serve_stream(
    mut stream: TcpStream,
    answers: &Answers,
    asked: &Mutex<Vec<(String, RecordType)>>,
) -> std::io::Result<()> {
    loop {
        let mut question = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut question).await?;
        let Some(answer) = answer(&question, answers, asked) else { continue };
        let bytes = answer.to_vec().unwrap();
        stream.write_u16(bytes.len().try_into().unwrap()).await?;
        stream.write_all(&bytes).await?;
    }
}

fn answer(question: &[u8], answers: &Answers, asked: &Mutex<Vec<(String, RecordType)>>) -> Option<Message> {
    let message = Message::from_vec(question).unwrap();
    let query = message.queries[0].clone();
    let key = (query.name().to_string(), query.query_type());
    let before = {
        let mut asked = asked.lock().unwrap();
        asked.push(key.clone());
        asked.iter().filter(|one| **one == key).count() - 1
    };
    let mut reply = Message::response(message.metadata.id, message.metadata.op_code);
    reply.add_query(query.clone());
    reply.metadata.recursion_available = true;
    match answers(&key.0, key.1, before) {
        Found::Addresses(ips) => add_addresses(&mut reply, query.name(), &ips, key.1),
        Found::Alias(alias, ips) => {
            let alias = Name::from_ascii(alias).unwrap();
            let record = RData::CNAME(rdata::CNAME(alias.clone()));
            reply.add_answer(Record::from_rdata(query.name().clone(), 300, record));
            add_addresses(&mut reply, &alias, &ips, key.1);
        }
        Found::Code(code) => reply.metadata.response_code = code,
        Found::Silence => return None,
    }
    Some(reply)
}

fn add_addresses(reply: &mut Message, name: &Name, ips: &[IpAddr], kind: RecordType) {
    for ip in ips {
        let data = RData::from(*ip);
        if data.record_type() == kind {
            reply.add_answer(Record::from_rdata(name.clone(), 300, data));
        }
    }
}
