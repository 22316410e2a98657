//! An Apache for one test, whose mod_auth_openidc makes it a relying party of an OpenID Provider.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use postrider::signing::SigningAlgorithm;
use tokio::net::TcpStream;

use crate::host::{Folder, NOBODY, certificate_file, free_port, is_root};
use crate::provider::{CLIENT_ID, CLIENT_SECRET};
use crate::receivers::Ca;
use crate::support::eventually;

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";
/// What is served at `/protected` to those who are signed in.
pub const PROTECTED: &str = "for those who are signed in\n";
const CLAIMED_PORTS: usize = 5;

/// Ends with the value, or with the test's thread.
pub struct Apache {
    child: Child,
    folder: Folder,
    port: u16,
}

impl Apache {
    /// One that trusts `ca` and knows the provider by its issuer alone, as it finds the rest by discovery.
    pub async fn start(ca: &Ca, issuer: &str, algorithm: SigningAlgorithm) -> Self {
        for _ in 0..CLAIMED_PORTS {
            if let Some(apache) = Self::try_start(ca, issuer, algorithm, free_port()).await {
                return apache;
            }
        }
        panic!("no port for Apache stayed free");
    }

    /// None where the port was taken meanwhile.
    pub async fn try_start(ca: &Ca, issuer: &str, algorithm: SigningAlgorithm, port: u16) -> Option<Self> {
        assert!(
            Path::new(PROGRAM).exists() && Path::new(MODULES).join("mod_auth_openidc.so").exists(),
            "Apache with mod_auth_openidc is not installed: run scripts/install-test-peers.sh"
        );
        let folder = Folder::new("apache");
        folder.write("apache.conf", &configuration(folder.path(), ca.path(), issuer, algorithm, port));
        folder.write("server.pem", &certificate_file(ca, &["127.0.0.1"]));
        folder.write("protected", PROTECTED);
        let child = spawn(&folder);
        let mut apache = Self { child, folder, port };
        let mut taken = false;
        eventually(Duration::from_secs(20), "Apache listens", async || {
            let ended = apache.child.try_wait().unwrap();
            taken = ended.is_some() && apache.log().contains("Address already in use");
            assert!(taken || ended.is_none(), "Apache ended ({ended:?}): {}", apache.log());
            // It writes its process id once the port is its own: who answers there before may be another.
            taken || !apache.folder.read("pid").is_empty() && TcpStream::connect(("127.0.0.1", port)).await.is_ok()
        })
        .await;
        (!taken).then_some(apache)
    }

    /// An absolute URL of it.
    pub fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Where mod_auth_openidc takes logout tokens.
    pub fn backchannel_logout_uri(&self) -> String {
        self.url("/redirect_uri?logout=backchannel")
    }

    /// What it said so far: to find out why it did not do what it should.
    pub fn log(&self) -> String {
        self.folder.read("error.log") + &self.folder.read("stderr")
    }
}

impl Drop for Apache {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("Apache said: {}", self.log());
        }
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

fn configuration(folder: &Path, roots: &Path, issuer: &str, algorithm: SigningAlgorithm, port: u16) -> String {
    let (folder, roots) = (folder.display(), roots.display());
    let modules = ["mpm_event", "authn_core", "authz_core", "authz_user", "ssl", "auth_openidc"];
    let modules: String =
        modules.iter().map(|name| format!("LoadModule {name}_module {MODULES}/mod_{name}.so\n")).collect();
    format!(
        r#"{modules}
ServerRoot "{folder}"
DefaultRuntimeDir "{folder}"
PidFile "{folder}/pid"
Mutex "file:{folder}"
ErrorLog "{folder}/error.log"
LogLevel error auth_openidc:debug
Listen 127.0.0.1:{port}
ServerName 127.0.0.1:{port}
DocumentRoot "{folder}"
SSLEngine on
SSLCertificateFile "{folder}/server.pem"
OIDCProviderMetadataURL {issuer}/.well-known/openid-configuration
OIDCCABundlePath "{roots}"
OIDCClientID {CLIENT_ID}
OIDCClientSecret {CLIENT_SECRET}
OIDCIDTokenSignedResponseAlg {algorithm}
OIDCRedirectURI https://127.0.0.1:{port}/redirect_uri
OIDCCryptoPassphrase known-to-this-Apache-alone
OIDCScope openid
<Location />
    AuthType openid-connect
    Require valid-user
</Location>
"#
    )
}

/// As one process, which leaves none behind however it ends; not as root, whose rights it has no use for.
fn spawn(folder: &Folder) -> Child {
    let mut command = Command::new(PROGRAM);
    command.arg("-X").arg("-f").arg(folder.path().join("apache.conf")).env_clear().current_dir("/");
    let stderr = File::create(folder.path().join("stderr")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    if is_root() {
        folder.give_to(NOBODY);
        command.uid(NOBODY).gid(NOBODY);
    }
    // SAFETY: prctl may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command.spawn().unwrap()
}
