// Package httploop holds an agent loop in Python and one in Node, without
// dependencies, that ask Ringi's server before they run a tool. Its tests play
// them against a real server and a vendor that is none.
package httploop
