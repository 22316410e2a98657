//! Keys of links in files.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use postrider::identity::AddressId;
use postrider::links::{LinkKey, LinkKeyProblem as Problem, LinkKeys};
use uuid::Uuid;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("postrider-link-keys-{}", Uuid::new_v4().simple()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

fn token_with(keys: &LinkKeys) -> String {
    keys.verification_token(AddressId(Uuid::nil())).as_str().to_owned()
}

#[test]
fn a_generated_key_is_read_again_from_a_file_of_its_owners_alone() {
    let folder = Folder::new();
    let (one, two) = (folder.0.join("one"), folder.0.join("two"));
    let key = LinkKey::generate().unwrap();
    key.write_file(&one).unwrap();
    LinkKey::generate().unwrap().write_file(&two).unwrap();
    assert_eq!(fs::read_to_string(&one).unwrap(), key.to_text());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let read = LinkKeys::from_files(&[one.clone(), two.clone()]).unwrap();
    assert_eq!(read.count(), 2);
    assert_eq!(token_with(&read), token_with(&LinkKeys::new(std::slice::from_ref(&key)).unwrap()));
    assert_ne!(token_with(&read), token_with(&LinkKeys::from_files(&[two]).unwrap()), "two keys are two keys");

    let refused = key.write_file(&one).unwrap_err();
    assert_eq!(refused.problem, Problem::Unwritable(ErrorKind::AlreadyExists));
    assert_eq!(fs::read_to_string(&one).unwrap(), key.to_text(), "left as it is");
}

#[test]
fn a_secret_is_the_same_in_hex_and_in_every_base64() {
    let secret: Vec<u8> = (0..33).map(|byte| 0xff - byte * 7).collect();
    let expected = token_with(&LinkKeys::new(&[LinkKey::from_bytes(&secret).unwrap()]).unwrap());
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    use base64::Engine;
    use base64::prelude::*;
    for text in [
        hex.clone(),
        hex.to_uppercase(),
        BASE64_STANDARD.encode(&secret),
        BASE64_STANDARD_NO_PAD.encode(&secret),
        BASE64_URL_SAFE.encode(&secret),
        BASE64_URL_SAFE_NO_PAD.encode(&secret),
    ] {
        for end in ["", "\n", "\r\n"] {
            let key = LinkKey::from_text(&format!("{text}{end}")).unwrap();
            assert_eq!(token_with(&LinkKeys::new(&[key]).unwrap()), expected, "{text}");
        }
    }
}

#[test]
fn a_file_that_holds_no_key_is_refused_by_its_name_and_never_by_its_content() {
    let folder = Folder::new();
    let hex = |digits: usize| "5ec7e7".repeat(400)[..digits].to_owned();
    for (content, problem) in [
        (hex(62).into_bytes(), Problem::Length),
        (hex(2050).into_bytes(), Problem::Length),
        (b"5ec7e7==".to_vec(), Problem::NotHexNorBase64),
        (hex(65).into_bytes(), Problem::NotHexNorBase64),
        (b"c2VjcmV0c2VjcmV0".to_vec(), Problem::Length),
        (Vec::new(), Problem::NotOneLine),
        (b"\n".to_vec(), Problem::NotOneLine),
        (format!("{}\n{}\n", hex(64), hex(64)).into_bytes(), Problem::NotOneLine),
        (b"-----BEGIN PRIVATE KEY-----".to_vec(), Problem::NotOneLine),
        (format!("5ec7e7!{}", hex(64)).into_bytes(), Problem::NotHexNorBase64),
        (vec![0xff; 64], Problem::NotHexNorBase64),
        (vec![b'a'; 4097], Problem::TooLarge),
    ] {
        let path = folder.file("key", &content);
        let refused = LinkKeys::from_files(std::slice::from_ref(&path)).unwrap_err();
        assert_eq!((refused.problem, &refused.path), (problem, &path));
        let shown = format!("{refused} {refused:?}");
        assert!(shown.contains("key") && !shown.contains("5ec7e7") && !shown.contains("c2Vj"), "{shown}");
    }
    let missing = folder.0.join("missing");
    let refused = LinkKeys::from_files(&[missing]).unwrap_err();
    assert_eq!(refused.problem, Problem::Unreadable(ErrorKind::NotFound));
    assert_eq!(LinkKeys::from_files(&[]).unwrap_err().problem, Problem::NoFile);
}
