// Command gemm generates the matrix kernels of package kernel.
package main

import . "github.com/mmcloughlin/avo/build"

func main() { Generate() }
