mod programs;
mod texts;
