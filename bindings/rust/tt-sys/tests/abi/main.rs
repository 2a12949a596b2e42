//! Struct layouts and constants match those of a C compiler, which tests/gen/abi_dump.c prints.
use std::path::Path;
use std::process::Command;

macro_rules! layout {
    // One block per struct: hundreds of nested scopes exhaust the compiler's stack.
    ($out:ident, $s:ident, $($field:ident),*) => {{
        $out.push(format!("struct {} {}", stringify!($s), std::mem::size_of::<tt_sys::$s>()));
        let x = std::mem::MaybeUninit::<tt_sys::$s>::uninit();
        let base = x.as_ptr();
        $(
            let offset = unsafe { std::ptr::addr_of!((*base).$field) } as usize - base as usize;
            $out.push(format!("field {}.{} {}", stringify!($s), stringify!($field), offset));
        )*
    }};
}

macro_rules! constant {
    ($out:ident, $name:ident) => {
        $out.push(format!("constant {} {}", stringify!($name), tt_sys::$name));
    };
}

include!("rows.rs");

#[test]
fn equals_the_c_compilers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi_dump");
    let built = Command::new("cc")
        .arg("-I")
        .arg(root.join("include"))
        .arg(root.join("tests/gen/abi_dump.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(built.expect("cc runs").success());
    let dump =
        String::from_utf8(Command::new(&program).output().expect("abi_dump runs").stdout).unwrap();
    let mut ours = Vec::new();
    rows(&mut ours);
    if let Some(path) = std::env::var_os("TT_ABI_TO") {
        std::fs::write(path, ours.join("\n")).expect("TT_ABI_TO can be written");
        // tests/bindings compares all languages
    }
    // names that Rust reserves have a trailing _
    let theirs: Vec<_> = dump.lines().map(|l| l.replace(".type ", ".type_ ")).collect();
    assert!(theirs.len() > 1500);
    for (rust, c) in ours.iter().zip(&theirs) {
        assert_eq!(rust, c);
    }
    assert_eq!(ours.len(), theirs.len());
}
