//! The `pillarbox` program.

fn main() -> std::process::ExitCode {
    pillarbox::main(std::env::args_os())
}
