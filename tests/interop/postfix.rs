//! A Postfix for one test: a relay that takes mail by login over TLS, and mailboxes beside it. Nothing leaves it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::host::{Folder, certificate_file, common_user, free_port, has_ended, is_root};
use crate::receivers::Ca;
use crate::support::eventually;

pub const USER: &str = "postrider";
pub const PASSWORD: &str = "correct horse: 50% staple/@";
/// Mailboxes by address, and their folders.
const MAILBOXES: [(&str, &str); 5] = [
    ("someone@mail.test", "someone"),
    ("later@mail.test", "later"),
    ("björn.ünal@mail.test", "björn"),
    ("someone@xn--bcher-kva.test", "books"),
    ("@club.test", "club"), // whoever it is there
];
/// What the smaller relays take.
pub const SMALL_BYTES: usize = 4096;

const DAEMONS: &str = "/usr/lib/postfix/sbin";
const NEEDS_ROOT: &str = "Postfix's master needs root, or sudo without a password";
const CLAIMED_PORTS: usize = 5;
const SOON: Duration = Duration::from_secs(20);

/// Where it listens.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    /// STARTTLS, without which nothing is taken.
    pub starttls: u16,
    /// TLS from the first byte, and AUTH LOGIN alone.
    pub implicit: u16,
    /// As the first, but for messages of [`SMALL_BYTES`] at most.
    pub small: u16,
    /// As that, but says of no extension that can be done without: neither SIZE nor SMTPUTF8.
    pub bare: u16,
    /// As the first, but closes a connection on which nothing was said for a while.
    pub impatient: u16,
}

impl Ports {
    pub fn free() -> Self {
        Self {
            starttls: free_port(),
            implicit: free_port(),
            small: free_port(),
            bare: free_port(),
            impatient: free_port(),
        }
    }
}

/// Ends with the value, or with the test's process.
pub struct Postfix {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    folder: Folder,
    master: i32,
    pub ports: Ports,
}

impl Postfix {
    pub async fn start(ca: &Ca) -> Self {
        for _ in 0..CLAIMED_PORTS {
            if let Some(postfix) = Self::try_start(ca, Ports::free()).await {
                return postfix;
            }
        }
        panic!("Postfix ended {CLAIMED_PORTS} times as it started: no ports stayed free?");
    }

    /// None where a port was taken meanwhile.
    pub async fn try_start(ca: &Ca, ports: Ports) -> Option<Self> {
        assert!(
            Path::new(DAEMONS).join("master").exists() && Path::new("/usr/sbin/saslpasswd2").exists(),
            "Postfix with Cyrus SASL is not installed: run scripts/install-test-peers.sh"
        );
        let folder = Folder::new("postfix");
        configure(&folder, ca, ports);
        let mut child = spawn(&folder);
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut postfix = Self { child, input, output, folder, master: 0, ports };
        postfix.await_start().await.then_some(postfix)
    }

    /// Ends it and starts it again, with whatever clients were connected cut off.
    pub async fn restart(&mut self) {
        self.input.as_mut().unwrap().write_all(b"restart\n").unwrap();
        assert!(self.await_start().await, "the ports were free: {}", self.log());
    }

    /// False where a port was taken.
    async fn await_start(&mut self) -> bool {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap(); // a second at most: until its accounts are made
        let started = line.trim_end().strip_prefix("started ").and_then(|master| master.parse().ok());
        self.master = started.unwrap_or_else(|| panic!("{NEEDS_ROOT}: {}", self.log()));
        let mut ended = false;
        eventually(SOON, "Postfix greets", async || {
            // Its master keeps to itself why. It says that it started once the ports are its own: who greets before may
            // be another.
            ended = has_ended(self.master);
            let has_started = self.log().contains(&format!("master[{}]: daemon started", self.master));
            ended || has_started && greets(self.ports.starttls).await
        })
        .await;
        !ended
    }

    /// What it said so far.
    pub fn log(&self) -> String {
        self.folder.read("maillog") + &self.folder.read("stderr")
    }

    /// Where it keeps everything.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process that all others are children of, and the leader of their group.
    pub const fn master(&self) -> i32 {
        self.master
    }

    /// Closes what the end of this process would close.
    pub fn abandon(&mut self) {
        self.input = None;
    }

    /// How many messages were taken over each connection that has ended, apart from those that never said EHLO.
    pub fn messages_by_connection(&self) -> Vec<usize> {
        let log = self.log();
        let ended = log.lines().filter(|line| line.contains("disconnect from") && line.contains(" ehlo="));
        ended.map(|line| line.split_once(" data=").map_or(0, |(_, count)| leading_number(count))).collect()
    }

    /// The messages in the mailbox of `address`, as they were delivered, once there are so many.
    pub async fn messages(&self, address: &str, count: usize) -> Vec<Vec<u8>> {
        let (_, name) = MAILBOXES.into_iter().find(|(known, _)| *known == address).unwrap();
        let new = self.folder.path().join("mail").join(name).join("new");
        eventually(SOON, "Postfix delivers", async || files(&new).len() >= count).await;
        let messages: Vec<Vec<u8>> = files(&new).into_iter().map(|file| fs::read(file).unwrap()).collect();
        assert_eq!(messages.len(), count, "{}", self.log());
        messages
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("Postfix said: {}", self.log());
        }
        drop(self.input.take()); // which ends it
        _ = self.child.wait();
    }
}

/// `data=1/2` is one of two.
fn leading_number(text: &str) -> usize {
    text.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Whether a server at `port` says 220, and not only the system that it will accept.
async fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)).await else { return false };
    let mut code = [0; 3];
    stream.read_exact(&mut code).await.is_ok() && &code == b"220"
}

fn configure(folder: &Folder, ca: &Ca, ports: Ports) {
    for name in ["conf", "conf/sasl", "mail"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    folder.write("server.pem", &certificate_file(ca, &["127.0.0.1", "localhost"]));
    folder.write("conf/main.cf", &main_cf(folder.path()));
    folder.write("conf/master.cf", &master_cf(ports));
    let mailboxes: String = MAILBOXES.iter().map(|(address, name)| format!("{address} {name}/\n")).collect();
    folder.write("conf/mailboxes", &mailboxes);
    folder.write("conf/recipients", "later@mail.test 450 4.2.1 Later\n");
    let accounts = folder.path().join("conf/sasl/sasldb2");
    for (name, mechanisms) in [("smtpd", "PLAIN LOGIN"), ("login", "LOGIN")] {
        let file = format!(
            "pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {}\nmech_list: {mechanisms}\n",
            accounts.display()
        );
        folder.write(&format!("conf/sasl/{name}.conf"), &file);
    }
}

fn main_cf(folder: &Path) -> String {
    let (folder, reader) = (folder.display(), common_user());
    format!(
        "compatibility_level = 3.6
config_directory = {folder}/conf
queue_directory = {folder}/queue
data_directory = {folder}/data
maillog_file = {folder}/maillog
maillog_file_prefixes = {folder}
myhostname = relay.test
mydestination =
alias_maps =
notify_classes =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
disable_dns_lookups = yes
smtpd_peername_lookup = no
smtputf8_enable = yes
in_flow_delay = 0
default_transport = error:nothing leaves
relay_transport = error:nothing leaves
local_transport = error:nothing is local
virtual_mailbox_domains = mail.test, club.test, xn--bcher-kva.test
virtual_mailbox_base = {folder}/mail
virtual_mailbox_maps = texthash:{folder}/conf/mailboxes
virtual_minimum_uid = 1
virtual_uid_maps = static:{reader}
virtual_gid_maps = static:{reader}
smtpd_tls_chain_files = {folder}/server.pem
smtpd_tls_auth_only = yes
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = cyrus
smtpd_sasl_path = smtpd
smtpd_sasl_local_domain = relay.test
smtpd_relay_restrictions = permit_sasl_authenticated, reject
smtpd_recipient_restrictions = check_recipient_access texthash:{folder}/conf/recipients, permit_sasl_authenticated, reject
"
    )
}

fn master_cf(ports: Ports) -> String {
    let Ports { starttls, implicit, small, bare, impatient } = ports;
    format!(
        "127.0.0.1:{starttls} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt
127.0.0.1:{implicit} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt -o smtpd_tls_wrappermode=yes -o smtpd_sasl_path=login
127.0.0.1:{small} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt -o message_size_limit={SMALL_BYTES}
127.0.0.1:{bare} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt -o message_size_limit={SMALL_BYTES} -o smtpd_discard_ehlo_keywords=size,smtputf8
127.0.0.1:{impatient} inet n - n - - smtpd -o smtpd_tls_security_level=encrypt -o smtpd_timeout=4s
postlog unix-dgram n - n - 1 postlogd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
proxymap unix - - n - - proxymap
"
    )
}

/// postfix.sh, as root.
fn spawn(folder: &Folder) -> Child {
    let script = [env!("CARGO_MANIFEST_DIR"), "tests", "interop", "postfix.sh"].iter().collect::<PathBuf>();
    let mut command = Command::new(if is_root() { "sh" } else { "sudo" });
    if !is_root() {
        command.args(["-n", "sh"]);
    }
    command.arg(script).arg(folder.path()).args([USER, PASSWORD, "relay.test", &common_user().to_string()]);
    let stderr = fs::File::create(folder.path().join("stderr")).unwrap();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr);
    command.spawn().unwrap_or_else(|error| panic!("{NEEDS_ROOT}: {error}"))
}
