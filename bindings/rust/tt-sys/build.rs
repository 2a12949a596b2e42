//! Finds libtt: in TT_LIB_DIR, in the build directory of the tree that this crate lies in, or by pkg-config. TT_STATIC=1 links libtt.a.
use std::path::{Path, PathBuf};
use std::process::{exit, Command};
use std::{env, fs};

fn main() {
    for name in ["TT_LIB_DIR", "TT_STATIC", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={}", name);
    }
    let fixed = env::var("TT_STATIC").map_or(false, |v| !v.is_empty() && v != "0");
    let file = if fixed { "libtt.a" } else { "libtt.so" };
    let places = places();
    let found = places.iter().find(|p| p.0.join(file).exists()).unwrap_or_else(|| {
        eprintln!("tt-sys: {} was not found. Searched:", file);
        places.iter().for_each(|(dir, why)| eprintln!("  {} ({})", dir.display(), why));
        eprintln!("Build tt (./dev build), install it where pkg-config looks, or set TT_LIB_DIR to the library's directory.");
        exit(1)
    });
    let dir = found.0.canonicalize().expect("a directory");
    if fixed {
        println!("cargo:rerun-if-changed={}", dir.join(file).display());
        println!(
            "cargo:rustc-link-search=native={}\ncargo:rustc-link-lib=static:-bundle=tt",
            dir.display()
        );
        println!("cargo:rustc-link-lib=dylib=stdc++\ncargo:rustc-link-lib=dylib=m");
    } else {
        link_shared(&dir);
    }
}

/// Where the library may be, and why there: only there, if one was named.
fn places() -> Vec<(PathBuf, String)> {
    if let Ok(dir) = env::var("TT_LIB_DIR") {
        return vec![(dir.into(), "TT_LIB_DIR".into())];
    }
    let tree = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../../build");
    let asked = Command::new("pkg-config").args(["--variable=libdir", "tt"]).output();
    let (dir, why): (String, String) = match &asked {
        Ok(done) if done.status.success() => {
            (String::from_utf8_lossy(&done.stdout).trim().into(), "pkg-config tt".into())
        }
        Ok(done) => (
            "nowhere".into(),
            format!(
                "pkg-config tt: {}",
                String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or("unknown")
            ),
        ),
        Err(why) => ("nowhere".into(), format!("pkg-config: {}", why)),
    };
    vec![(tree, "the source tree's build".into()), (PathBuf::from(dir), why)]
}

/// By links beside what cargo builds: `cargo run` and `cargo test` let programs search there.
fn link_shared(dir: &Path) {
    let beside = PathBuf::from(env::var("OUT_DIR").unwrap());
    for name in ["libtt.so", "libtt.so.0"] {
        let _ = fs::remove_file(beside.join(name));
        std::os::unix::fs::symlink(dir.join(name), beside.join(name))
            .expect("OUT_DIR takes a link");
    }
    println!("cargo:rustc-link-search=native={}\ncargo:rustc-link-lib=dylib=tt", beside.display());
}
