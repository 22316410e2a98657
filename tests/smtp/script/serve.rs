//! One connection, by its script.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::log::Log;
use super::{Act, Point, Script};

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Both for S {}

enum Wire {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Gone,
}

struct Session {
    wire: Wire,
    script: Script,
    acceptor: TlsAcceptor,
    number: usize,
    log: Arc<Log>,
    unread: Vec<u8>,
    come_to: HashMap<Point, usize>,
    /// The last thing said.
    said: Vec<u8>,
}

pub(super) async fn serve(tcp: TcpStream, script: Script, acceptor: TlsAcceptor, number: usize, log: Arc<Log>) {
    let shared = Arc::clone(&log);
    let wire = Wire::Clear(tcp);
    let (unread, come_to, said) = (Vec::new(), HashMap::new(), Vec::new());
    let mut session = Session { wire, script, acceptor, number, log, unread, come_to, said };
    let _ = session.run().await; // until the client or the script ends it
    drop(session);
    shared.note(number, |seen| seen.gone = true);
}

impl Session {
    async fn run(&mut self) -> io::Result<()> {
        if self.script.implicit_tls {
            self.perform(vec![Act::Handshake]).await?;
        }
        self.come(Point::Greeting).await?;
        loop {
            let line = self.read_up_to(b"\n").await?;
            let point = self.point(&line);
            self.come(point).await?;
            if point == Point::Data && self.said.starts_with(b"354") {
                self.read_message().await?;
                self.come(Point::DataEnd).await?;
            }
        }
    }

    fn point(&self, line: &[u8]) -> Point {
        if self.said.starts_with(b"334") {
            return Point::AuthAnswer;
        }
        let line = String::from_utf8_lossy(line).to_ascii_uppercase();
        let offers_tls = self.script.acts(Point::EhloInClear, 0).iter().any(is_start_tls_offer);
        match line.split([' ', ':', '\r']).next().unwrap() {
            "EHLO" if matches!(self.wire, Wire::Clear(_)) && offers_tls => Point::EhloInClear,
            "EHLO" => Point::Ehlo,
            "STARTTLS" => Point::StartTls,
            "AUTH" => Point::Auth,
            "MAIL" => Point::Mail,
            "RCPT" => Point::Rcpt,
            "DATA" => Point::Data,
            "RSET" => Point::Rset,
            "QUIT" => Point::Quit,
            _ => Point::Unknown,
        }
    }

    async fn come(&mut self, point: Point) -> io::Result<()> {
        let times = self.come_to.entry(point).or_default();
        let nth = *times;
        *times += 1;
        self.perform(self.script.acts(point, nth)).await
    }

    async fn perform(&mut self, acts: Vec<Act>) -> io::Result<()> {
        for act in acts {
            match act {
                Act::Say(bytes) => {
                    self.said = bytes.clone();
                    self.stream()?.write_all(&bytes).await?;
                    self.stream()?.flush().await?;
                }
                Act::Pause(time) => tokio::time::sleep(time).await,
                Act::Hear => self.hear().await?,
                Act::Handshake => self.handshake().await?,
                Act::Close => {
                    let _ = self.stream()?.shutdown().await;
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                Act::Reset => {
                    self.tcp()?.set_zero_linger()?;
                    self.wire = Wire::Gone;
                    return Err(io::ErrorKind::ConnectionReset.into());
                }
                Act::Stall => loop {
                    self.hear().await?;
                },
            }
        }
        Ok(())
    }

    async fn handshake(&mut self) -> io::Result<()> {
        let Wire::Clear(tcp) = std::mem::replace(&mut self.wire, Wire::Gone) else { panic!("TLS in TLS") };
        let stream = self.acceptor.accept(tcp).await?;
        let tls = stream.get_ref().1;
        let (sni, alpn) = (tls.server_name().map(str::to_owned), tls.alpn_protocol().map(<[u8]>::to_vec));
        self.log.note(self.number, |seen| (seen.sni, seen.alpn) = (sni, alpn));
        self.wire = Wire::Tls(Box::new(stream));
        Ok(())
    }

    /// Reads the message after a 354, and notes it.
    async fn read_message(&mut self) -> io::Result<()> {
        let message = self.read_up_to(b"\r\n.\r\n").await?;
        self.log.note(self.number, |seen| seen.messages.push(message));
        Ok(())
    }

    async fn read_up_to(&mut self, end: &[u8]) -> io::Result<Vec<u8>> {
        loop {
            if let Some(start) = self.unread.windows(end.len()).position(|window| window == end) {
                return Ok(self.unread.drain(..start + end.len()).collect());
            }
            self.hear().await?;
        }
    }

    /// Reads whatever comes, and notes it.
    async fn hear(&mut self) -> io::Result<()> {
        let mut bytes = [0; 4096];
        let read = self.stream()?.read(&mut bytes).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let heard = &bytes[..read];
        self.unread.extend_from_slice(heard);
        let is_tls = matches!(self.wire, Wire::Tls(_));
        self.log
            .note(self.number, |seen| if is_tls { &mut seen.tls } else { &mut seen.clear }.extend_from_slice(heard));
        Ok(())
    }

    fn stream(&mut self) -> io::Result<&mut dyn Both> {
        match &mut self.wire {
            Wire::Clear(tcp) => Ok(tcp),
            Wire::Tls(tls) => Ok(tls.as_mut()),
            Wire::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn tcp(&self) -> io::Result<&TcpStream> {
        match &self.wire {
            Wire::Clear(tcp) => Ok(tcp),
            Wire::Tls(tls) => Ok(tls.get_ref().0),
            Wire::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

fn is_start_tls_offer(act: &Act) -> bool {
    matches!(act, Act::Say(bytes) if String::from_utf8_lossy(bytes).to_ascii_uppercase().contains("STARTTLS"))
}
