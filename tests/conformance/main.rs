//! Cases from the projects that the seeds come from, against our program.

mod reflexion;
